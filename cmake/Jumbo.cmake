# SPDX-License-Identifier: Apache-2.0
# Jumbo builds: a compiler reads several files of a target as one, so that it reads the headers that they share once. From
# nothing this takes less than half of the processor time: src/policy 23 s instead of 68. After a change of one file it
# takes longer, and missing includes may go unnoticed, so it is for those who build once: `make` does it where there is no
# compiler cache.
option(WINNOW_JUMBO "Compile several files at a time" OFF)

# winnow_jumbo(TARGET KERNELS...): KERNELS are compiled one by one, since they change what the compiler may generate.
function(winnow_jumbo target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WINNOW_JUMBO} UNITY_BUILD_BATCH_SIZE 30)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # which takes the files of a batch for headers
    target_compile_options(${target} PRIVATE $<$<BOOL:${WINNOW_JUMBO}>:-Wno-subobject-linkage>)
  endif()
endfunction()
