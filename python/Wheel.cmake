# SPDX-License-Identifier: Apache-2.0
# What goes into the wheel: the extension and, where they lie in any prefix, the command, ggml and libllama. What else a
# bare system lacks is added by auditwheel.
winnow_install_ggml(winnow/${WINNOW_PRIVATE_LIBRARIES} python)
winnow_run_path(winnow_python winnow winnow/${WINNOW_PRIVATE_LIBRARIES})
install(TARGETS winnow_python LIBRARY DESTINATION winnow COMPONENT python)
install(FILES ${PROJECT_BINARY_DIR}/python/winnow/_core.pyi DESTINATION winnow COMPONENT python)
if(WINNOW_BUILD_CLI)
  install(TARGETS winnow_command RUNTIME DESTINATION winnow/${CMAKE_INSTALL_BINDIR} COMPONENT python)
endif()
