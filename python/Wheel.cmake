# SPDX-License-Identifier: Apache-2.0
# What goes into the wheel: the extension and the command, and in lib/ the libraries of ggml and libllama, with those of
# newer processors under glibc-hwcaps/ where `get-deps.sh portable` has built them. What else a bare system lacks is added
# by auditwheel.
if(deps)
  set(ggml_is_found OFF)
else()
  set(ggml_is_found ON)  # an installed one, which stays where it is
endif()
set_target_properties(winnow_python PROPERTIES INSTALL_RPATH "$ORIGIN/lib" INSTALL_RPATH_USE_LINK_PATH ${ggml_is_found})
install(TARGETS winnow_python LIBRARY DESTINATION winnow COMPONENT python)
install(FILES ${PROJECT_BINARY_DIR}/python/winnow/_core.pyi DESTINATION winnow COMPONENT python)
if(WINNOW_BUILD_CLI)
  set_target_properties(winnow_command PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" INSTALL_RPATH_USE_LINK_PATH ${ggml_is_found})
  install(TARGETS winnow_command RUNTIME DESTINATION winnow/bin COMPONENT python)
endif()

# A wheel has no links: each library is there by the name that others ask for.
if(deps)
  file(GLOB libraries RELATIVE ${deps}/lib ${deps}/lib/lib*.so.0)
  foreach(library IN LISTS libraries)
    file(REAL_PATH ${deps}/lib/${library} file)
    install(FILES ${file} DESTINATION winnow/lib RENAME ${library} COMPONENT python)
  endforeach()
  if(EXISTS ${deps}/lib/glibc-hwcaps)
    install(DIRECTORY ${deps}/lib/glibc-hwcaps DESTINATION winnow/lib COMPONENT python)
  endif()
endif()
