# winnow_module(NAME SOURCES... DEPS...): one static library for one folder of src/.
# Folders see each other only through DEPS, so an include that breaks the layering does not link.
function(winnow_module name)
  cmake_parse_arguments(M "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(winnow_${name} STATIC ${M_SOURCES})
  target_include_directories(winnow_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(winnow_${name} PUBLIC ${M_DEPS} PRIVATE ${M_PRIVATE_DEPS} winnow_flags)
  set_property(GLOBAL APPEND PROPERTY WINNOW_MODULES winnow_${name})
endfunction()
