# SPDX-License-Identifier: Apache-2.0
# Jumbo builds: several files of a target are compiled as one, so that shared headers are read once. A build from scratch
# takes less than half of the processor time: src/policy 23 s instead of 68. A build after a change of one file takes
# longer, and missing includes can go unnoticed, so jumbo builds are for building once: `make` uses them if there is no
# compiler cache.
option(WINNOW_JUMBO "Compile several files at a time" OFF)

# winnow_jumbo(TARGET KERNELS...): KERNELS are compiled one by one, since they change the compiler's target.
function(winnow_jumbo target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WINNOW_JUMBO} UNITY_BUILD_BATCH_SIZE 30)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # which takes the files of a batch for headers
    target_compile_options(${target} PRIVATE $<$<BOOL:${WINNOW_JUMBO}>:-Wno-subobject-linkage>)
  endif()
endfunction()
