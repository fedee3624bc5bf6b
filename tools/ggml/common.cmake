# SPDX-License-Identifier: Apache-2.0
# The part of llama-common that winnow uses, for builds without llama.cpp's programs: no command line, presets, terminal
# or child processes, which would take a fifth of the processor time. The formats of tool calls, short files with long
# headers, are compiled as one.
function(winnow_common)
  get_target_property(sources llama-common SOURCES)
  list(FILTER sources EXCLUDE REGEX "^(arg|console|debug|imatrix-loader|llguidance|preset|subproc)\\.cpp$")
  set_target_properties(llama-common PROPERTIES SOURCES "${sources}" UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  list(FILTER sources INCLUDE REGEX "/parsers/.*\\.cpp$")
  set_source_files_properties(${sources} TARGET_DIRECTORY llama-common PROPERTIES UNITY_GROUP parsers)
endfunction()
cmake_language(DEFER CALL winnow_common)
