/* Prints the PTX of a kernel, as the example of docs/CAPI.md does. */
#include "attn-c/Attn.h"

#include <stdio.h>

int main(void) {
  AttnRequest *request = attnRequestCreate();
  attnRequestSetOption(request, attnStringFromC("q"),
                       attnStringFromC("1x2x64x64xf16"));
  AttnResult *result = attnCompile(request);
  AttnStringRef text = attnResultSucceeded(result)
                           ? attnResultGetPTX(result)
                           : attnResultGetDiagnosticText(result);
  fwrite(text.data, 1, text.length, stdout);
  attnResultDestroy(result);
  attnRequestDestroy(request);
  return 0;
}
