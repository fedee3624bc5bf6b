# SPDX-License-Identifier: Apache-2.0
# Contents of the wheel: the extension and, if they are found in a prefix, the command, ggml and libllama. auditwheel
# adds the other libraries that a bare system lacks.
winnow_install_ggml(winnow/${WINNOW_PRIVATE_LIBRARIES} python)
winnow_run_path(winnow_python winnow winnow/${WINNOW_PRIVATE_LIBRARIES})
install(TARGETS winnow_python LIBRARY DESTINATION winnow COMPONENT python)
install(FILES ${PROJECT_BINARY_DIR}/python/winnow/_core.pyi DESTINATION winnow COMPONENT python)
if(WINNOW_BUILD_CLI)
  install(TARGETS winnow_command RUNTIME DESTINATION winnow/${CMAKE_INSTALL_BINDIR} COMPONENT python)
endif()
