# SPDX-License-Identifier: Apache-2.0
"""One model for both programs: a copy of a GGUF file with f32 weights, its tokenizer, and its network in
transformers."""

import os

import gguf
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM


def write_f32(source, target):
    """Copies a GGUF file with its weights converted to f32, so that neither program quantises and both read the same
    numbers."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    written_by_the_writer = ("GGUF.", "general.architecture", "general.file_type", "general.quantization_version")
    for field in reader.fields.values():
        if not field.name.startswith(written_by_the_writer):
            of = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=of)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype("float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tokenizer(path):
    """The tokenizer of a SmolLM2 GGUF file. transformers' own GGUF reader misses that digits are single tokens."""
    fields = gguf.GGUFReader(path).fields
    kind = fields["tokenizer.ggml.model"].contents(), fields["tokenizer.ggml.pre"].contents()
    if kind != ("gpt2", "smollm"):
        raise SystemExit(f"{path} has the tokenizer {'/'.join(kind)}; this script knows gpt2/smollm")
    if fields["tokenizer.ggml.add_bos_token"].contents():
        raise SystemExit(f"{path} wants a first token, which this script does not add")
    vocabulary = {token: i for i, token in enumerate(fields["tokenizer.ggml.tokens"].contents())}
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    return made


def network(path):
    folder, name = os.path.split(os.path.abspath(path))
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
