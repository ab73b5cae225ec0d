//===- StreamCalls.cpp - Streams and events -------------------------------===//

#include "Platform.h"

using namespace cuda;
using mlir::attn::device::StreamKind;

/// CU_STREAM_NON_BLOCKING.
static constexpr unsigned kNonBlocking = 1;

/// Runs a body with a stream and its device.
static int callStream(
    const char *name, Handle handle,
    llvm::function_ref<Error(Platform &, Device &, LoadedStream &)> body) {
  return call(name, [&](Platform &p) -> Error {
    Expected<LoadedStream *> stream = p.getStream(handle);
    if (!stream)
      return stream.takeError();
    return body(p, **p.getDevice((*stream)->ordinal), **stream);
  });
}

static int
callEvent(const char *name, Handle handle,
          llvm::function_ref<Error(Platform &, Device &, LoadedEvent &)> body) {
  return call(name, [&](Platform &p) -> Error {
    Expected<LoadedEvent *> event = p.events.get(handle);
    if (!event)
      return event.takeError();
    return body(p, **p.getDevice((*event)->ordinal), **event);
  });
}

ATTN_API int cuStreamCreate(Handle *stream, unsigned flags) {
  return call("cuStreamCreate", [&](Platform &p) -> Error {
    if (Error error = checkOutput(stream))
      return error;
    Expected<int> ordinal = p.getCurrentOrdinal();
    if (!ordinal)
      return ordinal.takeError();
    static uint64_t count = 1;
    StreamKind kind =
        flags & kNonBlocking ? StreamKind::NonBlocking : StreamKind::Blocking;
    *stream = p.streams.add(
        {*ordinal, (*p.getDevice(*ordinal))->makeStream(kind), ++count, flags});
    return Error::success();
  });
}
ATTN_API int cuStreamCreateWithPriority(Handle *stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
ATTN_API int cuStreamDestroy_v2(Handle stream) {
  return call("cuStreamDestroy", [&](Platform &p) -> Error {
    Expected<LoadedStream *> found = p.streams.get(stream);
    if (!found)
      return found.takeError();
    (*p.getDevice((*found)->ordinal))->dropStream((*found)->stream);
    p.streams.drop(stream);
    return Error::success();
  });
}
ATTN_API int cuStreamSynchronize(Handle stream) {
  return callStream("cuStreamSynchronize", stream,
                    [](Platform &p, Device &device, LoadedStream &s) -> Error {
                      if (Error error = p.checkNotCaptured(s))
                        return error;
                      device.getOrder().synchronise(s.stream.actor);
                      return Error::success();
                    });
}
// All work is over by now: who sees that may rely on it.
ATTN_API int cuStreamQuery(Handle stream) {
  return callStream("cuStreamQuery", stream,
                    [](Platform &p, Device &device, LoadedStream &s) -> Error {
                      if (Error error = p.checkNotCaptured(s))
                        return error;
                      device.getOrder().synchronise(s.stream.actor);
                      return Error::success();
                    });
}
ATTN_API int cuStreamWaitEvent(Handle stream, Handle event, unsigned) {
  return callStream("cuStreamWaitEvent", stream,
                    [&](Platform &p, Device &device, LoadedStream &s) -> Error {
                      Expected<LoadedEvent *> found = p.events.get(event);
                      if (!found)
                        return found.takeError();
                      if ((*found)->capture)
                        (*found)->capture->wait(s.stream.actor, (*found)->tips);
                      else
                        device.wait(s.stream, (*found)->event);
                      return Error::success();
                    });
}
ATTN_API int cuStreamGetId(Handle stream, unsigned long long *id) {
  return callStream("cuStreamGetId", stream,
                    [&](Platform &, Device &, LoadedStream &s) -> Error {
                      if (Error error = checkOutput(id))
                        return error;
                      *id = s.id;
                      return Error::success();
                    });
}
ATTN_API int cuStreamGetFlags(Handle stream, unsigned *flags) {
  return callStream("cuStreamGetFlags", stream,
                    [&](Platform &, Device &, LoadedStream &s) -> Error {
                      if (Error error = checkOutput(flags))
                        return error;
                      *flags = s.flags;
                      return Error::success();
                    });
}
ATTN_API int cuStreamGetPriority(Handle stream, int *priority) {
  return callStream("cuStreamGetPriority", stream,
                    [&](Platform &, Device &, LoadedStream &) -> Error {
                      if (Error error = checkOutput(priority))
                        return error;
                      *priority = 0;
                      return Error::success();
                    });
}
ATTN_API int cuStreamGetCtx(Handle stream, Handle *context) {
  return callStream("cuStreamGetCtx", stream,
                    [&](Platform &p, Device &, LoadedStream &s) -> Error {
                      if (Error error = checkOutput(context))
                        return error;
                      *context = p.getPrimary(s.ordinal);
                      return Error::success();
                    });
}
ATTN_API int cuStreamAddCallback(Handle stream,
                                 void (*callback)(Handle, int, void *),
                                 void *data, unsigned) {
  int status = cuStreamQuery(stream);
  if (!status && callback)
    callback(stream, 0, data);
  return status;
}
ATTN_API int cuLaunchHostFunc(Handle stream, void (*function)(void *),
                              void *data) {
  int status = cuStreamQuery(stream);
  if (!status && function)
    function(data);
  return status;
}

ATTN_API int cuEventCreate(Handle *event, unsigned) {
  return call("cuEventCreate", [&](Platform &p) -> Error {
    if (Error error = checkOutput(event))
      return error;
    Expected<int> ordinal = p.getCurrentOrdinal();
    if (!ordinal)
      return ordinal.takeError();
    *event = p.events.add({*ordinal, {}, nullptr, {}});
    return Error::success();
  });
}
ATTN_API int cuEventDestroy_v2(Handle event) {
  return callEvent("cuEventDestroy", event,
                   [&](Platform &p, Device &, LoadedEvent &) {
                     p.events.drop(event);
                     return Error::success();
                   });
}
ATTN_API int cuEventRecord(Handle event, Handle stream) {
  return callEvent("cuEventRecord", event,
                   [&](Platform &p, Device &device, LoadedEvent &e) -> Error {
                     Expected<LoadedStream *> found = p.getStream(stream);
                     if (!found)
                       return found.takeError();
                     e.capture = p.findCapture((*found)->stream);
                     if (e.capture)
                       e.tips = e.capture->record((*found)->stream.actor);
                     else
                       device.record(e.event, (*found)->stream);
                     return Error::success();
                   });
}
ATTN_API int cuEventRecordWithFlags(Handle event, Handle stream, unsigned) {
  return cuEventRecord(event, stream);
}
ATTN_API int cuEventSynchronize(Handle event) {
  return callEvent("cuEventSynchronize", event,
                   [](Platform &, Device &device, LoadedEvent &e) {
                     device.synchronise(e.event);
                     return Error::success();
                   });
}
ATTN_API int cuEventQuery(Handle event) {
  return callEvent("cuEventQuery", event,
                   [](Platform &, Device &device, LoadedEvent &e) {
                     device.synchronise(e.event);
                     return Error::success();
                   });
}
ATTN_API int cuEventElapsedTime_v2(float *milliseconds, Handle from,
                                   Handle to) {
  return callEvent(
      "cuEventElapsedTime", from,
      [&](Platform &p, Device &, LoadedEvent &first) -> Error {
        if (Error error = checkOutput(milliseconds))
          return error;
        Expected<LoadedEvent *> last = p.events.get(to);
        if (!last)
          return last.takeError();
        if (!first.event.isRecorded || !(*last)->event.isRecorded)
          return fail(Status::InvalidHandle,
                      "expected events that were recorded, got one that was "
                      "not");
        *milliseconds = 1000 * ((*last)->event.seconds - first.event.seconds);
        return Error::success();
      });
}
ATTN_API int cuEventElapsedTime(float *milliseconds, Handle from, Handle to) {
  return cuEventElapsedTime_v2(milliseconds, from, to);
}
