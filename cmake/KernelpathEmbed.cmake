# kernelpath_embed(TARGET FUNCTION name HEADER folder/file.h BASE dir FILES a.json …)
#
# Puts data files inside a library. Generates the definition of
#
#   std::span<const kernelpath::EmbeddedFile> FUNCTION();
#
# FUNCTION is a qualified name (kernelpath::engines::embedded_tables) that HEADER declares. FILES are
# paths below BASE; the table has them in the given order, each under that path. A file that changes
# is embedded again. The bytes come in through the assembler's .incbin: no code is generated from
# them, and compile time does not grow with their size.
function(kernelpath_embed target)
  cmake_parse_arguments(ARG "" "FUNCTION;HEADER;BASE" "FILES" ${ARGN})
  string(MAKE_C_IDENTIFIER "embedded_${ARG_FUNCTION}" symbol)
  string(REGEX MATCH "^(.*)::([^:]+)$" matched "${ARG_FUNCTION}")
  if(NOT matched)
    message(FATAL_ERROR "kernelpath_embed: FUNCTION ${ARG_FUNCTION} has no namespace")
  endif()
  set(namespace "${CMAKE_MATCH_1}")
  set(function "${CMAKE_MATCH_2}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/embedded")

  set(index 0)
  set(paths)
  set(assembly "  .section .rodata\n")
  set(declarations "")
  set(rows "")
  foreach(file IN LISTS ARG_FILES)
    set(path "${ARG_BASE}/${file}")
    list(APPEND paths "${path}")
    set(name "${symbol}_${index}")
    string(APPEND assembly "  .balign 64\n" "  .global ${name}_begin\n  .global ${name}_end\n"
           "${name}_begin:\n  .incbin \"${path}\"\n${name}_end:\n" "  .skip 64\n")
    string(
      APPEND declarations
      "extern \"C\" {\nextern const char ${name}_begin[];\nextern const char ${name}_end[];\n}\n")
    string(APPEND rows "      {\"${file}\", between(${name}_begin, ${name}_end)},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  # The note says that the code needs no executable stack.
  string(APPEND assembly "  .section .note.GNU-stack,\"\",@progbits\n")

  file(CONFIGURE OUTPUT "${folder}/${function}.S" CONTENT "${assembly}" @ONLY)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/embedded.cpp.in" "${folder}/${function}.cpp" @ONLY)
  set_source_files_properties("${folder}/${function}.S" PROPERTIES OBJECT_DEPENDS "${paths}")
  target_sources(${target} PRIVATE "${folder}/${function}.S" "${folder}/${function}.cpp")
endfunction()
