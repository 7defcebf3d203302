// Marks the declarations that the shared library exports. Each public header opens its namespace with `namespace
// CONCORD_PUBLIC concord {`; everything else is compiled with hidden visibility. This line is what makes a header
// public (cmake/ConcordHeaders.cmake).
#pragma once

#if defined(__GNUC__)
#define CONCORD_PUBLIC [[gnu::visibility("default")]]
#else
#define CONCORD_PUBLIC
#endif
