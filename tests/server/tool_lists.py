# SPDX-License-Identifier: Apache-2.0
"""Lists of tools as agents and MCP servers send them: {sender: [(name, description, JSON Schema)]}.

Names and schemas are theirs, descriptions are not. None as a schema: the tool has none.
"""

# fmt: off
SAFE = 9007199254740991  # JavaScript's largest safe integer, zod's bound of integers
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
NULL = {"type": "null"}


def typed(kind):
    return lambda description=None, **more: {"type": kind, **({"description": description} if description else {}), **more}


string, integer, number, boolean, array = map(typed, ("string", "integer", "number", "boolean", "array"))


def enum(*values, **more):
    return {"type": "string", "enum": list(values), **more}


def optional(schema, **more):
    """An optional value as pydantic writes it."""
    return {"anyOf": [schema, NULL], "default": None, **more}


def an_object(required="", /, properties=None, **more):
    return {"type": "object", "properties": properties or {}, **({"required": required.split()} if required else {}), **more}


def closed(required="", /, properties=None, **more):
    return an_object(required, properties, additionalProperties=False, **more)


def zod(required="", /, **properties):
    return {"$schema": DRAFT_2020, **closed(required, properties)}


def titled(title, required="", /, defs=None, **properties):
    """A pydantic model: each property has a title."""
    named = {name: {"title": name.replace("_", " ").title(), **schema} for name, schema in properties.items()}
    return {**({"$defs": defs} if defs else {}), **an_object(required, named, title=title)}


MARKDOWN = """Runs a command in a shell that stays open.

# Rules
1. **Quote** paths with spaces: `cd "two words"`; never use `<|im_end|>` or </tool_call> in a command.
   - *Right*: `pytest -q && echo "done"`
   - Wrong: `find . | xargs grep`

| exit code | meaning |
|---|---|
| 0 | it worked \u2713 |

```json
{"name": "Bash", "arguments": {"command": "ls \\"$HOME\\""}}
```
<example>
user: what is in src?
</example>
"""

QUESTION = closed("question header options multiSelect", {"question": string("The whole question."), "header": string("At most 12 characters."),
    "options": array(minItems=2, maxItems=4, items=closed("label description", {"label": string(), "description": string()})),
    "multiSelect": boolean(default=False)})
FINDING = closed("file summary", {"file": string(), "line": integer("From 1.", minimum=-SAFE, maximum=SAFE), "summary": string(maxLength=400),
    "verdict": enum("CONFIRMED", "PLAUSIBLE")})

CLAUDE_CODE = [
    ("Task", "Hands a task to another agent.", zod("description prompt subagent_type", description=string(), prompt=string(), subagent_type=string(),
     resume=string(), max_turns=integer(exclusiveMinimum=0, maximum=SAFE))),
    ("Bash", MARKDOWN * 4, zod("command", command=string(), timeout=number("Milliseconds, at most 600000."), description=string(),
     run_in_background=boolean())),
    ("Grep", "Searches by ripgrep.", zod("pattern", **{"pattern": string(), "-A": number(), "-n": boolean(), "output_mode": enum("content",
     "files_with_matches", "count"), "head_limit": integer(minimum=-SAFE, maximum=SAFE)})),
    ("Read", "Reads a file.", zod("file_path", file_path=string(), offset=integer(minimum=0, maximum=SAFE), limit=integer(exclusiveMinimum=0,
     maximum=SAFE), pages=string())),
    ("MultiEdit", "Edits a file.", zod("file_path edits", file_path=string(), edits=array(minItems=1, items=closed("old_string new_string",
     {"old_string": string(), "new_string": string(), "replace_all": boolean(default=False)})))),
    ("WebFetch", "Fetches a page.", zod("url prompt", url=string(format="uri"), prompt=string())),
    ("TodoWrite", "Keeps a list.", zod("todos", todos=array(items=closed("content status activeForm", {"content": string(minLength=1),
     "status": enum("pending", "in_progress", "completed"), "activeForm": string(minLength=1)})))),
    ("AskUserQuestion", "Asks the user.", zod("questions", questions=array(minItems=1, maxItems=4, items=QUESTION), answers={"type": "object",
     "propertyNames": string(), "additionalProperties": string()})),
    ("ReportFindings", "Reports what was found.", zod("findings", findings=array(maxItems=32, items=FINDING))),
    ("ExitPlanMode", "Ends planning.", {"$schema": DRAFT_2020, "type": "object", "properties": {}, "additionalProperties": {}}),
]

CODEX = [
    ("shell", "Runs a command and returns its output.", closed("command", {"command": array(items=string()), "workdir": string(),
     "timeout_ms": number(), "sandbox_permissions": string(), "justification": string()})),
    ("update_plan", "Updates the plan.", closed("plan", {"explanation": string(), "plan": array("Steps.", items=closed("step status",
     {"step": string(), "status": string("pending, in_progress or completed")}))})),
    ("write_stdin", "Writes to a session.", closed("session_id", {"session_id": number(), "chars": string(), "yield_time_ms": number()})),
    ("view_image", "Shows an image.", closed("path", {"path": string()})),
    ("list_mcp_resources", "Lists resources.", closed(properties={"server": string(), "cursor": string()})),
]

AIDER = [
    ("replace_lines", "Replaces lines of files.", an_object("explanation edits", {"explanation": string("What changes, and why."),
     "edits": array(items=an_object("path original_lines updated_lines", {"path": string(), "original_lines": array(items=string()),
     "updated_lines": array(items=string())}))})),
    ("write_file", "Writes whole files.", an_object("explanation files", {"explanation": string(), "files": array(items=an_object("path content",
     {"path": string(), "content": string()}))})),
]

LINES = array(items=string(pattern="^[1-9]\\d*-[1-9]\\d*$"))
CLINE = [
    ("read_file", "Reads files.", closed("files", {"files": array(minItems=1, maxItems=5, items=closed("path line_ranges", {"path": string(),
     "line_ranges": {"type": ["array", "null"], "items": LINES["items"]}}))})),
    ("execute_command", "Runs a command.", closed("command cwd", {"command": string(), "cwd": {"type": ["string", "null"]}})),
    ("ask_followup_question", "Asks.", closed("question follow_up", {"question": string(), "follow_up": array(minItems=1, maxItems=4,
     items=closed("text mode", {"text": string(), "mode": {"type": ["string", "null"]}}))})),
    ("use_mcp_tool", "Calls a tool of a server.", closed("server_name tool_name arguments", {"server_name": string(), "tool_name": string(),
     "arguments": {"type": ["object", "null"], "additionalProperties": True}})),
    ("switch_mode", "Changes the mode.", closed("mode_slug reason", {"mode_slug": enum("code", "architect", "ask"), "reason": {"type": ["string",
     "null"], "default": None}})),
]

RISK = enum("UNKNOWN", "LOW", "MEDIUM", "HIGH", description="What the action might break.")
OPENHANDS = [
    ("execute_bash", MARKDOWN, an_object("command security_risk", {"command": string(), "is_input": enum("true", "false"), "timeout": number(),
     "security_risk": RISK})),
    ("str_replace_editor", "Views and edits files.", an_object("command path security_risk", {"command": enum("view", "create", "str_replace",
     "insert", "undo_edit"), "path": string(), "insert_line": integer(), "view_range": array("`[11, 12]`", items=integer()), "security_risk": RISK})),
    ("think", "Notes a thought.", an_object("thought", {"thought": string()})),
    ("task_tracker", "Tracks tasks.", closed("command", {"command": enum("view", "plan"), "task_list": array(items=closed("title status id",
     {"id": string(), "title": string(), "status": enum("todo", "in_progress", "done")}))})),
    ("finish", "Ends.", an_object("message", {"message": string()})),
]

GOOSE = [
    ("developer__shell", MARKDOWN, {"$schema": DRAFT_2020, "title": "ShellParams", **an_object("command", {"command": string(),
     "timeout_secs": {"type": ["integer", "null"], "format": "uint64", "minimum": 0}})}),
    ("developer__text_editor", "Edits.", {"$defs": {"Command": {"oneOf": [{"const": "view", "description": "Shows.", "type": "string"},
     {"const": "write", "type": "string"}]}}, **an_object("command path", {"command": {"$ref": "#/$defs/Command", "description": "What to do."},
     "path": string(), "view_range": {"type": ["array", "null"], "items": integer(format="int64"), "minItems": 2, "maxItems": 2}})}),
    ("extensionmanager__manage_extensions", "Turns extensions on.", {"$defs": {"Action": enum("enable", "disable")},
     **an_object("action extension_name", {"action": {"allOf": [{"$ref": "#/$defs/Action"}]}, "extension_name": string()})}),
    ("analyze", "Analyzes code.", an_object("path", {"path": string(), "max_depth": integer(format="uint32", minimum=0, default=3),
     "focus": string(nullable=True)})),
]

MINI_SWE_AGENT = [
    ("bash", "Runs a command.", an_object("command", {"command": string()})),
]

FILESYSTEM = [
    ("read_text_file", "Reads a file.", {**closed("path", {"path": string(), "tail": number("The last lines."), "head": number("The first lines.")}),
     "$schema": DRAFT_7}),
    ("edit_file", "Edits a file.", {**closed("path edits", {"path": string(), "edits": array(items=closed("oldText newText", {"oldText": string(),
     "newText": string()})), "dryRun": boolean(default=False)}), "$schema": DRAFT_7}),
    ("directory_tree", "A tree as JSON.", {**closed("path", {"path": string(), "excludePatterns": array(items=string(), default=[])}),
     "$schema": DRAFT_7}),
    ("list_allowed_directories", "Lists folders.", {"type": "object", "properties": {}, "required": []}),
]

GIT = [
    ("git_status", "Shows the status.", titled("GitStatus", "repo_path", repo_path=string())),
    ("git_diff", "Shows changes.", titled("GitDiff", "repo_path target", repo_path=string(), target=string(), context_lines=integer(default=3))),
    ("git_log", "Shows commits.", titled("GitLog", "repo_path", repo_path=string(), max_count=integer(default=10), start_timestamp=optional(string()),
     end_timestamp=optional(string()))),
    ("git_branch", "Lists branches.", titled("GitBranch", "repo_path branch_type", repo_path=string(), branch_type=string(),
     contains=optional(string()))),
]

COMMENT = {"anyOf": [an_object("path position body", {"path": string(), "position": number(), "body": string()}), an_object("path line body",
    {"path": string(), "line": number(), "body": string()})]}
GITHUB = [
    ("get_me", "Tells who you are.", an_object()),
    ("push_files", "Pushes files.", an_object("owner repo branch files message", {"owner": string(), "repo": string(), "branch": string(),
     "message": string(), "files": array(items=closed("path content", {"path": string(), "content": string()}))})),
    ("list_issues", "Lists issues.", an_object("owner repo", {"owner": string(), "repo": string(), "state": enum("OPEN", "CLOSED"),
     "labels": array(items=string()), "perPage": number(minimum=1, maximum=100), "since": string(format="date-time")})),
    ("create_pull_request_review", "Reviews.", an_object("owner repo pull_number body event", {"owner": string(), "repo": string(),
     "pull_number": number(), "body": string(), "event": enum("APPROVE", "REQUEST_CHANGES", "COMMENT"), "comments": array(items=COMMENT)})),
]

PLAYWRIGHT = [
    ("browser_close", "Closes the page.", zod()),
    ("browser_resize", "Resizes.", zod("width height", width=number(), height=number())),
    ("browser_click", "Clicks.", zod("element ref", element=string(), ref=string(), doubleClick=boolean(), button=enum("left", "right", "middle"),
     modifiers=array(items=enum("Alt", "Control", "Meta", "Shift")))),
    ("browser_fill_form", "Fills in.", zod("fields", fields=array(items=closed("name type ref value", {"name": string(), "type": enum("textbox",
     "checkbox", "slider"), "ref": string(), "value": string()})))),
    ("browser_wait_for", "Waits.", zod(time=number(), text=string(), textGone=string())),
]

POSTGRES = [
    ("query", "Runs a query.", an_object(properties={"sql": string()})),
    ("list_schemas", "Lists schemas.", titled("list_schemasArguments")),
    ("explain_query", "Explains.", titled("explain_queryArguments", "sql", sql=string(), analyze=boolean(default=False),
     hypothetical_indexes=array(default=[], items={"additionalProperties": True, "type": "object"}))),
    ("analyze_workload", "Analyzes.", titled("Workload", max_index_size_mb=integer(default=10000), method=enum("dta", "llm", default="dta"),
     costs={"type": "object", "additionalProperties": {"anyOf": [number(), NULL]}})),
]

SLACK = [
    ("slack_list_channels", "Lists channels.", an_object(properties={"limit": number(default=100, maximum=200), "cursor": string()})),
    ("slack_post_message", "Posts.", an_object("channel_id", {"channel_id": string(pattern="^[CDG][A-Z0-9]{8,}$"), "text": string(),
     "blocks": array(items={})}, oneOf=[{"required": ["text"]}, {"required": ["blocks"]}])),
    ("slack_add_reaction", "Reacts.", an_object("channel_id timestamp reaction", {"channel_id": string(),
     "timestamp": string(pattern="^\\d{10}\\.\\d{6}$"), "reaction": {"type": "string", "not": {"pattern": ":"}}})),
]

ENTITY = an_object("name entityType observations", {"name": string(), "entityType": string(), "observations": array(items=string())},
    additionalProperties=False)
MEMORY = [
    ("create_entities", "Creates entities.", an_object("entities", {"entities": array(items=ENTITY)})),
    ("delete_relations", "Deletes.", an_object("relations", {"relations": array("Relations.", items=an_object("from to relationType",
     {"from": string(), "to": string(), "relationType": string()}))})),
    ("read_graph", "Reads all.", {"type": "object", "properties": {}}),
]

FETCH = [
    ("fetch", "Fetches a URL.", titled("Fetch", "url", url=string(format="uri", minLength=1), max_length=integer(default=5000, exclusiveMinimum=0,
     exclusiveMaximum=1000000), start_index=integer(default=0, minimum=0), raw=boolean(default=False))),
]

HOME_ASSISTANT = [
    ("HassTurnOn", "Turns on.", {"type": "object", "properties": {"name": string(), "area": string(), "floor": string(),
     "domain": array(items=string()), "device_class": array(items=enum("outlet", "switch", "blind"))}, "required": []}),
    ("HassLightSet", "Sets a light.", {"type": "object", "properties": {"name": string(), "color": string(), "temperature": integer(minimum=0),
     "brightness": integer(minimum=0, maximum=100)}, "anyOf": [{"required": ["name"]}, {"required": ["color"]}]}),
    ("HassClimateSetTemperature", "Sets a temperature.", {"type": "object", "properties": {"temperature": number(multipleOf=0.5),
     "preferred": {"enum": [1, "auto", None, True, 0.5]}}, "required": ["temperature"]}),
    ("GetLiveContext", "Tells the state.", {"type": "object", "properties": {}}),
    ("GetDateTime", "Tells the time.", None),
]

NODE = an_object("name", {"name": string(title="Name"), "children": array(items={"$ref": "#/$defs/Node"}, default=[], title="Children")},
    title="Node")
PERSON = an_object("name kind", {"name": string(), "kind": {"const": "person", "type": "string"}, "age": optional(integer(minimum=0, maximum=150))})
FIRM = an_object("kind", {"kind": {"const": "firm"}, "size": {"enum": [1, 10, "many"]}})
LANGCHAIN = [
    ("Joke", "A joke.", titled("Joke", "setup punchline", setup=string(), punchline=string(), rating=optional(integer(),
     description="From 1 to 10."))),
    ("Tree", "A tree.", titled("Tree", "root", defs={"Node": NODE}, root={"$ref": "#/$defs/Node"})),
    ("Extract", "Extracts.", titled("Extract", "found", defs={"Person": PERSON, "Firm": FIRM},
     found=array(items={"oneOf": [{"$ref": "#/$defs/Person"}, {"$ref": "#/$defs/Firm"}], "discriminator": {"propertyName": "kind",
     "mapping": {"person": "#/$defs/Person", "firm": "#/$defs/Firm"}}}), anything={})),
    ("tavily_search", MARKDOWN, {**an_object("query", {"query": string(), "include_domains": optional(array(items=string())),
     "time_range": optional(enum("day", "week")), "topic": optional(enum("general", "news"))}), "description": "Input."}),
]

CREWAI = [
    ("Delegate_work_to_coworker",
     "Tool Name: Delegate work\nTool Arguments: {'task': {'description': 'The task', 'type': 'str'}}\nTool Description: Delegates.",
     titled("Delegate", "task context coworker", task=string(), context=string(), coworker=string())),
    ("Search_a_csv", "Searches.", titled("Csv", "search_query", search_query=string(), options={"type": "object", "additionalProperties": True},
     span={"type": "array", "prefixItems": [integer(), integer()], "minItems": 2, "maxItems": 2}, limits={"type": "array", "items": [number(),
     number()]})),
]

ZED = [
    ("edit_file", MARKDOWN, an_object("display_description path mode", {"display_description": string(), "path": string(),
     "mode": {"oneOf": [{"const": "edit", "description": "An old file.", "type": "string"}, {"const": "create", "type": "string"}],
     "description": "How."}})),
    ("read_file", "Reads.", an_object("path", {"path": string(), "start_line": {"type": "integer", "format": "uint32", "minimum": 1,
     "nullable": True}})),
    ("now", "Tells the time.", an_object("timezone", {"timezone": {"oneOf": [enum("utc"), enum("local")]}}, additionalProperties=False)),
    ("diagnostics", "Tells problems.", an_object(properties={"path": {"type": ["string", "null"], "default": None}})),
]

CONTINUE = [
    ("builtin_read_file", "Reads.", an_object("filepath", {"filepath": string()})),
    ("builtin_view_diff", "Shows changes.", an_object()),
    ("builtin_run_terminal_command", "Runs.", an_object("command", {"command": string(), "waitForCompletion": boolean()})),
    ("builtin_multi_edit", "Edits.", an_object("filepath edits", {"filepath": string(), "edits": array(items=an_object("old_string new_string",
     {"old_string": string(), "new_string": string(), "replace_all": boolean()}))})),
]

COPILOT = [
    ("get_errors", "Tells errors.", an_object(properties={"filePaths": array()})),
    ("fetch_webpage", "Fetches.", an_object("urls query", {"urls": array(items=string()), "query": string()})),
    ("create_and_run_task", "Makes a task.", an_object("task workspaceFolder", {"workspaceFolder": string(), "task": an_object("label type command",
     {"label": string(), "type": enum("shell"), "command": string(), "args": array(items=string()), "isBackground": boolean(),
     "problemMatcher": array(items=string()), "group": string()})})),
    ("manage_todo_list", "Keeps a list.", an_object("operation", {"operation": enum("write", "read"),
     "todoList": array(items=an_object("id title status", {"id": number(), "title": string(), "status": enum("not-started", "in-progress",
     "completed")}))})),
    ("get_changed_files", "Lists changes.", {}),
]

NOTION = [
    ("query_data_source", "Queries.", {"$schema": DRAFT_7, **an_object("id", {"id": string(format="uuid",
     pattern="^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12})$"), "filter": {"anyOf": [an_object("and",
     {"and": array(items={"$ref": "#/properties/filter"})}), an_object("property", {"property": string(),
     "equals": {"$ref": "#/properties/filter/anyOf/1/properties/property"}})]}, "properties": {"type": "object",
     "propertyNames": {"pattern": "^(?!\\$).*$"}, "additionalProperties": {"type": ["string", "number", "boolean"]}},
     "cover": {"$ref": "#/components/schemas/File"}})}),
    ("update_page", "Updates.", {"allOf": [an_object("page", {"page": string()}), {"properties": {"archived": boolean()}}],
     "if": {"required": ["archived"]}, "then": {"required": ["page"]}}),
]

MONEY = {"type": "object", "properties": {"amount": string(pattern="^-?\\d+(\\.\\d{1,2})?$"), "currency": string(minLength=3, maxLength=3)},
    "required": ["amount"], "minProperties": 1}
OPENAPI = [
    ("listOrders", "Lists.", an_object(properties={"limit": integer(format="int32", minimum=1, maximum=100, example=10),
     "created": string(format="date-time", nullable=True), "status": {"type": "string", "enum": ["open", "paid", ""], "x-enum-names": ["Open", "Paid",
     "None"]}})),
    ("createOrder", "Creates.", {"definitions": {"Money": MONEY}, **an_object("total", {"total": {"$ref": "#/definitions/Money"},
     "email": string(format="email"), "ip": string(format="ipv4"), "tags": array(items=string(), uniqueItems=True, contains={"const": "a"}),
     "meta": {"type": "object", "patternProperties": {"^x-": string()}, "maxProperties": 8, "dependentRequired": {"a": ["b"]}}},
     unevaluatedProperties=False)}),
    ("ping", None, {"type": "object", "additionalProperties": False, "readOnly": True, "deprecated": True, "$comment": "none"}),
]

LISTS = {"claude-code": CLAUDE_CODE, "codex": CODEX, "aider": AIDER, "cline": CLINE, "openhands": OPENHANDS, "goose": GOOSE,
    "mini-swe-agent": MINI_SWE_AGENT, "mcp-filesystem": FILESYSTEM, "mcp-git": GIT, "mcp-github": GITHUB, "mcp-playwright": PLAYWRIGHT,
    "mcp-postgres": POSTGRES, "mcp-slack": SLACK, "mcp-memory": MEMORY, "mcp-fetch": FETCH, "home-assistant": HOME_ASSISTANT, "langchain": LANGCHAIN,
    "crewai": CREWAI, "zed": ZED, "continue": CONTINUE, "copilot": COPILOT, "notion": NOTION, "openapi": OPENAPI}

# Tools that are not functions: the API's own servers run them, or the model was trained to use them.
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch" LF hunk+'}
OTHER_RESPONSES = [
    {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": GRAMMAR},
    {"type": "web_search", "external_web_access": False},
    {"type": "local_shell"},
    {"type": "namespace", "name": "gmail", "description": "Mail.", "tools": [{"type": "function", "name": "send", "parameters": an_object()}]},
    {"type": "mcp", "server_label": "docs", "server_url": "https://example.org/mcp", "require_approval": "never"},
    {"type": "file_search", "vector_store_ids": ["vs_1"]},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "image_generation"},
]
OTHER_MESSAGES = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10000},
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 5, "user_location": {"type": "approximate", "city": "Kyiv"}},
    {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
    {"type": "mcp_toolset", "mcp_server_name": "docs"},
]
