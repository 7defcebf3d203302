// What the shared library exports: all that a public header declares, since it opens its namespace with
// `namespace CONCORD_PUBLIC concord {`. The rest is compiled as hidden. Included by every public header; the list of them
// is cmake/public_headers.txt.
#pragma once

#if defined(__GNUC__)
#define CONCORD_PUBLIC [[gnu::visibility("default")]]
#else
#define CONCORD_PUBLIC
#endif
