# SPDX-License-Identifier: Apache-2.0
# What goes into the wheel: the extension, the command, and ggml's and libllama's libraries beside them.
set_target_properties(winnow_python PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
install(TARGETS winnow_python LIBRARY DESTINATION winnow COMPONENT python)
