# SPDX-License-Identifier: Apache-2.0
import json

import pytest

import winnow


def test_documents_are_asked_about(session, text, tmp_path):
    with winnow.DocumentStore(str(tmp_path / "store")) as store:
        assert store.add(session, "one", text).outcome == "added"
        assert store.add(session, "one", text).outcome == "unchanged"
        store.add(session, "two", text[::-1])
        assert [document.name for document in store.list()] == ["one", "two"] and not store.verify()
        cache, facts = winnow.ask(session, [store.open(name, session) for name in ("one", "two")], "and then", method="reuse")
        assert facts["document_tokens"] == sum(document.tokens for document in store.list())
        assert len(winnow.answer(cache, max_tokens=4).tokens) == 4
        with pytest.raises(winnow.UsageError, match="cannot be saved"):
            session.save(str(tmp_path / "a.kv"), cache)
        with pytest.raises(winnow.UnknownDocument, match="three"):
            store.open("three", session)
    with pytest.raises(winnow.UsageError, match="closed"):
        store.list()


def test_records_are_those_of_the_folder(session, text, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps({"id": "a", "text": text, "question": "and then", "outputs": ["word"]}) + "\n")
    records = winnow.evaluate(session, str(file), ["full", "knorm"], 32, output=tmp_path / "out", max_prompt=150)
    lines = (tmp_path / "out/records.jsonl").read_text().splitlines()
    assert records == [json.loads(line) for line in lines] and {record["spec"] for record in records} == {"full", "knorm"}
