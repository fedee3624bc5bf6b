# SPDX-License-Identifier: Apache-2.0
# winnow_module(NAME SOURCES... KERNELS... DEPS... PRIVATE_DEPS... HEAVY HEADERS...): one static library for one folder of src/.
# HEAVY headers of other libraries are precompiled, but not for KERNELS, sources for several kinds of processors: behind a precompiled header
# GCC 12 at -O0 refuses intrinsics that take immediates.
# A folder may include the headers of those in its DEPS, and of theirs: tests/includes checks it. Outside of a shared library only what is
# marked with WINNOW_EXPORT is visible.
function(winnow_module name)
  cmake_parse_arguments(M "" "" "SOURCES;KERNELS;DEPS;PRIVATE_DEPS;HEAVY" ${ARGN})
  add_library(winnow_${name} STATIC ${M_SOURCES} ${M_KERNELS})
  set_source_files_properties(${M_KERNELS} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  target_include_directories(winnow_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(winnow_${name} PUBLIC ${M_DEPS} PRIVATE ${M_PRIVATE_DEPS} winnow_flags)
  winnow_precompile(winnow_${name} ${M_HEAVY})
endfunction()

# winnow_cold(TARGET): nothing in it is hot, so it is compiled fast: in two thirds of the time.
function(winnow_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>)
endfunction()
