package quickjs

import (
	"fmt"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// defineFunction adds a Go function to the global object. C code identifies it by a number.
func (e *Engine) defineFunction(name string, f Function) error {
	number := int32(len(e.functions))
	e.functions = append(e.functions, f)
	text, err := libc.CString(name)
	if err != nil {
		return fmt.Errorf("define %s: %w", name, err)
	}
	defer libc.Xfree(e.tls, text)
	made := lib.XJS_NewCFunction2(e.tls, e.ctx, pointerTo(onCall), text, 0, lib.EJS_CFUNC_generic_magic, number)
	if isException(made) {
		return fmt.Errorf("define %s: %w", name, e.takeThrown())
	}
	global := lib.XJS_GetGlobalObject(e.tls, e.ctx)
	defer lib.XFreeValue(e.tls, e.ctx, global)
	const flags = lib.MJS_PROP_WRITABLE | lib.MJS_PROP_CONFIGURABLE | lib.MJS_PROP_THROW
	if lib.XJS_DefinePropertyValueStr(e.tls, e.ctx, global, text, made, flags) < 0 {
		return fmt.Errorf("define %s: %w", name, e.takeThrown())
	}
	return nil
}

func engineOf(handle uintptr) *Engine {
	found, _ := engines.Load(handle)
	e, _ := found.(*Engine)
	return e
}

// onCall is called by C code to run a Go function. It ends a script that must stop, because
// the engine itself checks only occasionally.
func onCall(tls *libc.TLS, ctx uintptr, _ lib.TJSValue, argc int32, argv uintptr, number int32) lib.TJSValue {
	e := engineOf(lib.XJS_GetRuntimeOpaque(tls, lib.XJS_GetRuntime(tls, ctx)))
	given := valuesAt(argv, int(argc))
	args := make([]any, len(given))
	for i, v := range given {
		arg, ok := e.argumentOf(v)
		if !ok {
			return lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION} // the engine already has the exception
		}
		args[i] = arg
	}
	result, err := e.functions[number](args)
	switch {
	case e.mustStop():
		thrown := e.throwError(lib.XJS_ThrowInternalError, "interrupted")
		lib.XJS_SetUncatchableException(tls, ctx, 1)
		return thrown
	case err != nil:
		return e.throwError(lib.XJS_ThrowInternalError, err.Error())
	}
	return e.fromGo(result)
}

// argumentOf converts an argument like toGo, but leaves a thrown error pending for the
// script.
func (e *Engine) argumentOf(v lib.TJSValue) (any, bool) {
	if v.Ftag == lib.EJS_TAG_STRING || v.Ftag == lib.EJS_TAG_STRING_ROPE {
		return e.readString(v)
	}
	n, err := e.toGo(v)
	return n, err == nil
}

// onInterrupt is called by C code to ask whether the script must stop.
func onInterrupt(_ *libc.TLS, _, handle uintptr) int32 {
	if engineOf(handle).mustStop() {
		return 1
	}
	return 0
}

// onResolve is called by C code to resolve the name of an imported module.
func onResolve(tls *libc.TLS, ctx, importer, name, handle uintptr) uintptr {
	e := engineOf(handle)
	if e.options.Resolve == nil {
		e.throwError(lib.XJS_ThrowTypeError, "imports are not available")
		return 0
	}
	found, err := e.options.Resolve(libc.GoString(importer), libc.GoString(name))
	if err != nil {
		e.throwError(lib.XJS_ThrowTypeError, "module normalization failed: "+err.Error())
		return 0
	}
	text, err := libc.CString(validWTF8(found))
	if err != nil {
		return 0
	}
	defer libc.Xfree(tls, text)
	return lib.Xjs_strdup(tls, ctx, text) // the engine frees the copy
}

// onLoad is called by C code to load a module.
func onLoad(tls *libc.TLS, ctx, name, handle uintptr, _ lib.TJSValue) uintptr {
	e := engineOf(handle)
	if e.options.Load == nil {
		e.throwError(lib.XJS_ThrowTypeError, "imports are not available")
		return 0
	}
	source, err := e.options.Load(libc.GoString(name))
	if err != nil {
		e.throwError(lib.XJS_ThrowTypeError, "module load failed: "+err.Error())
		return 0
	}
	source = validWTF8(source)
	text, err := libc.CString(source)
	if err != nil {
		e.throwError(lib.XJS_ThrowInternalError, "out of memory")
		return 0
	}
	defer libc.Xfree(tls, text)
	const flags = lib.MJS_EVAL_TYPE_MODULE | lib.MJS_EVAL_FLAG_COMPILE_ONLY
	v := lib.XJS_Eval(tls, ctx, text, lib.Tsize_t(len(source)), name, flags)
	if isException(v) {
		return 0
	}
	module := *(*uintptr)(unsafe.Pointer(&v)) // the engine holds a reference to the module by its name
	lib.XFreeValue(tls, ctx, v)
	return module
}

// throwError throws an error with the given C function, which takes a format string.
func (e *Engine) throwError(by func(*libc.TLS, uintptr, uintptr, uintptr) lib.TJSValue, message string) lib.TJSValue {
	text, err := libc.CString("%s\x00" + validWTF8(message))
	if err != nil {
		return by(e.tls, e.ctx, 0, 0)
	}
	defer libc.Xfree(e.tls, text)
	const room = 16
	args := e.tls.Alloc(room)
	defer e.tls.Free(room)
	return by(e.tls, e.ctx, text, libc.VaList(args+8, text+3))
}
