package quickjs

import (
	"errors"
	"fmt"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// Eval runs a script in the global scope and returns its last value.
func (e *Engine) Eval(name, source string) (Value, error) {
	return e.evalSource(name, source, lib.MJS_EVAL_TYPE_GLOBAL)
}

// Parse parses a module and its imports without running them.
func (e *Engine) Parse(name, source string) error {
	v, err := e.evalSource(name, source, lib.MJS_EVAL_TYPE_MODULE|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
	e.freeValue(v)
	return err
}

func (e *Engine) evalSource(name, source string, flags int32) (Value, error) {
	file, err := libc.CString(name)
	if err != nil {
		return Value{}, fmt.Errorf("parse %s: %w", name, err)
	}
	defer libc.Xfree(e.tls, file)
	source = validWTF8(source)
	text, err := libc.CString(source)
	if err != nil {
		return Value{}, fmt.Errorf("parse %s: %w", name, err)
	}
	defer libc.Xfree(e.tls, text)
	return e.resultOf(lib.XJS_Eval(e.tls, e.ctx, text, lib.Tsize_t(len(source)), file, flags))
}

// Member returns a property of an object.
func (e *Engine) Member(object Value, name string) (Value, error) {
	text, err := libc.CString(name)
	if err != nil {
		return Value{}, fmt.Errorf("take %s: %w", name, err)
	}
	defer libc.Xfree(e.tls, text)
	return e.resultOf(lib.XJS_GetPropertyStr(e.tls, e.ctx, object.v, text))
}

// Call calls a function. The arguments are strings, float64s, bools or nil for undefined.
// The result is converted as in Function.
func (e *Engine) Call(f Value, args ...any) (any, error) {
	size := sizeofValue * max(len(args), 1)
	argv := libc.Xmalloc(e.tls, lib.Tsize_t(size))
	if argv == 0 {
		return nil, errors.New("not enough memory for arguments")
	}
	defer libc.Xfree(e.tls, argv)
	given := valuesAt(argv, len(args))
	for i, arg := range args {
		given[i] = e.fromGo(arg)
	}
	defer func() {
		for _, v := range given {
			lib.XFreeValue(e.tls, e.ctx, v)
		}
	}()
	for _, v := range given {
		if isException(v) {
			return nil, e.takeThrown()
		}
	}
	v, err := e.resultOf(lib.XJS_Call(e.tls, e.ctx, f.v, undefined, int32(len(args)), argv))
	if err != nil {
		return nil, err
	}
	defer e.freeValue(v)
	return e.toGo(v.v)
}

// RunJobs runs pending promise jobs, until none is left, a job throws, Finish was called or
// the engine must stop. more reports whether jobs may be left.
func (e *Engine) RunJobs() (more bool, err error) {
	context := libc.Xmalloc(e.tls, sizeofPointer)
	if context == 0 {
		return false, errors.New("not enough memory for jobs")
	}
	defer libc.Xfree(e.tls, context)
	for !e.finished && !e.mustStop() {
		switch n := lib.XJS_ExecutePendingJob(e.tls, e.rt, context); {
		case n == 0:
			return false, nil
		case n < 0:
			return true, e.takeThrown()
		}
	}
	return true, nil
}
