// libjpeg, and what leaves it when something is wrong. Used by the reader and the writer of JPEG alone.
#pragma once

#include <csetjmp>
#include <cstdio>

// clang-format off
#include <jpeglib.h>  // needs <cstdio>
#include <jerror.h>   // needs <jpeglib.h>
// clang-format on

namespace concord::data {

/// Errors of libjpeg, and its warnings of damage, end in `longjmp(leave, 1)`; `manager.msg_code` says which.
struct JpegErrors {
  jpeg_error_mgr manager;  // the first member: libjpeg's pointer to it is one to the whole
  std::jmp_buf leave;

  /// `err` of an object of libjpeg is to be this one.
  void set(jpeg_error_mgr*& err) {
    err = jpeg_std_error(&manager);
    manager.error_exit = leave_libjpeg;
    manager.emit_message = judge_warning;
  }

  [[noreturn]] static void leave_libjpeg(j_common_ptr object) {
    std::longjmp(reinterpret_cast<JpegErrors*>(object->err)->leave, 1);
  }

 private:
  // Most warnings are about damage. These are about files that every program shows.
  static void judge_warning(j_common_ptr object, int level) {
    const int code = object->err->msg_code;
    const bool harmless =
        level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
    if (!harmless) leave_libjpeg(object);
  }
};

}  // namespace concord::data
