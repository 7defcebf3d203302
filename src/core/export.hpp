// Marks the declarations that the shared library exports. Each public header opens its namespace with `namespace
// CONCORD_PUBLIC concord {`; everything else is compiled with hidden visibility. cmake/public_headers.txt lists the
// public headers.
#pragma once

#if defined(__GNUC__)
#define CONCORD_PUBLIC [[gnu::visibility("default")]]
#else
#define CONCORD_PUBLIC
#endif
