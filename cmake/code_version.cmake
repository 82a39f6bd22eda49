# cmake -DSOURCE=... -DOUTPUT=... -DVERSION=... -P code_version.cmake: writes a source file that names the
# commit; run by every build, it touches the file only when the commit has changed.

execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
                WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(WRITE ${OUTPUT}.new "#include <string>

namespace strait {
std::string code_version() { return \"${VERSION}+${commit}\"; }
}  // namespace strait
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
