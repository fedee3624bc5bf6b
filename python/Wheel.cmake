# SPDX-License-Identifier: Apache-2.0
# What goes into the wheel: the extension and the command. They find ggml and libllama where they were built; auditwheel
# puts these, and all else that a bare system lacks, beside them.
set_target_properties(winnow_python PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS winnow_python LIBRARY DESTINATION winnow COMPONENT python)
install(FILES ${PROJECT_BINARY_DIR}/python/winnow/_core.pyi DESTINATION winnow COMPONENT python)
if(WINNOW_BUILD_CLI)
  install(TARGETS winnow_command RUNTIME DESTINATION winnow/bin COMPONENT python)
endif()
