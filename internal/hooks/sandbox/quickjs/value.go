package quickjs

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// Value is a value of an engine. It is valid until the engine is restored to an older
// image.
type Value struct{ v lib.TJSValue }

const (
	sizeofValue   = int(unsafe.Sizeof(lib.TJSValue{}))
	sizeofPointer = lib.Tsize_t(unsafe.Sizeof(uintptr(0)))
)

var undefined = lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED}

func isException(v lib.TJSValue) bool { return v.Ftag == lib.EJS_TAG_EXCEPTION }

func valuesAt(at uintptr, n int) []lib.TJSValue {
	return unsafe.Slice((*lib.TJSValue)(unsafe.Add(nil, at)), n)
}

func (e *Engine) freeValue(v Value) { lib.XFreeValue(e.tls, e.ctx, v.v) }

// resultOf returns the result of a C call, or the thrown error.
func (e *Engine) resultOf(v lib.TJSValue) (Value, error) {
	if isException(v) {
		return Value{undefined}, e.takeThrown()
	}
	return Value{v}, nil
}

// payloadOf returns the payload of a value: 64 bits, of which an integer or a boolean uses
// the lower half.
func payloadOf(v *lib.TJSValue) *uint64 { return (*uint64)(unsafe.Pointer(v)) }

// fromGo converts a string, a float64 or a bool. Any other value becomes undefined.
func (e *Engine) fromGo(from any) (v lib.TJSValue) {
	switch from := from.(type) {
	case string:
		return e.giveString(from)
	case float64:
		*(*float64)(unsafe.Pointer(&v)) = from
		v.Ftag = lib.EJS_TAG_FLOAT64
	case bool:
		if from {
			*payloadOf(&v) = 1
		}
		v.Ftag = lib.EJS_TAG_BOOL
	default:
		return undefined
	}
	return v
}

func (e *Engine) giveString(s string) lib.TJSValue {
	s = validWTF8(s)
	text, err := libc.CString(s)
	if err != nil {
		return lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
	}
	defer libc.Xfree(e.tls, text)
	return lib.XJS_NewStringLen(e.tls, e.ctx, text, lib.Tsize_t(len(s)))
}

// toGo converts a value to Go: a string, a float64, a bool, or nil. A lone surrogate in a
// string becomes the three bytes of its code point.
func (e *Engine) toGo(v lib.TJSValue) (any, error) {
	switch v.Ftag {
	case lib.EJS_TAG_STRING, lib.EJS_TAG_STRING_ROPE:
		return e.takeString(v)
	case lib.EJS_TAG_INT:
		return float64(int32(*payloadOf(&v))), nil
	case lib.EJS_TAG_FLOAT64:
		return *(*float64)(unsafe.Pointer(&v)), nil
	case lib.EJS_TAG_BOOL:
		return int32(*payloadOf(&v)) != 0, nil
	}
	return nil, nil
}

func (e *Engine) takeString(v lib.TJSValue) (string, error) {
	if s, ok := e.readString(v); ok {
		return s, nil
	}
	return "", e.takeThrown()
}

// readString converts a value to a string. If it throws, ok is false and the error stays
// pending.
func (e *Engine) readString(v lib.TJSValue) (s string, ok bool) {
	size := int(sizeofPointer)
	length := e.tls.Alloc(size)
	defer e.tls.Free(size)
	text := lib.XJS_ToCStringLen2(e.tls, e.ctx, length, v, 0)
	if text == 0 {
		return "", false
	}
	defer lib.XJS_FreeCString(e.tls, e.ctx, text)
	return string(bytesAt(text, uintptr(*(*lib.Tsize_t)(unsafe.Add(nil, length))))), true
}

// Error is a value that a script threw, as far as it can be described.
type Error struct {
	// Name and Message are the members of a thrown Error object. Name is empty if another
	// value was thrown.
	Name, Message string
	// Stack has a line for each call. File, Line and Column are the position of a
	// SyntaxError.
	Stack, File  string
	Line, Column int
	text         string
}

// Error returns the thrown value as a string.
func (e *Error) Error() string { return e.text }

// takeThrown takes the thrown value. Its getters may run; errors that they throw are
// dropped.
func (e *Engine) takeThrown() error {
	v := lib.XJS_GetException(e.tls, e.ctx)
	defer lib.XFreeValue(e.tls, e.ctx, v)
	told := &Error{
		Name: e.textOf(v, "name"), Message: e.textOf(v, "message"), Stack: e.textOf(v, "stack"),
		File: e.textOf(v, "fileName"), Line: e.numberOf(v, "lineNumber"), Column: e.numberOf(v, "columnNumber"),
	}
	var ok bool
	if told.text, ok = e.readString(v); !ok {
		e.dropThrown()
		told.text = strings.TrimSuffix(told.Name+": "+told.Message, ": ")
	}
	return told
}

// dropThrown drops the thrown value.
func (e *Engine) dropThrown() {
	lib.XFreeValue(e.tls, e.ctx, lib.XJS_GetException(e.tls, e.ctx))
}

// propertyOf returns a property of a thrown value; undefined if it cannot be read.
func (e *Engine) propertyOf(v lib.TJSValue, name string) lib.TJSValue {
	text, err := libc.CString(name)
	if err != nil {
		return undefined
	}
	defer libc.Xfree(e.tls, text)
	found := lib.XJS_GetPropertyStr(e.tls, e.ctx, v, text)
	if isException(found) {
		e.dropThrown()
		return undefined
	}
	return found
}

// textOf returns a string property, otherwise "".
func (e *Engine) textOf(v lib.TJSValue, name string) string {
	found := e.propertyOf(v, name)
	defer lib.XFreeValue(e.tls, e.ctx, found)
	if found.Ftag != lib.EJS_TAG_STRING && found.Ftag != lib.EJS_TAG_STRING_ROPE {
		return ""
	}
	s, ok := e.readString(found)
	if !ok {
		e.dropThrown()
	}
	return s
}

// numberOf returns a number property, otherwise 0.
func (e *Engine) numberOf(v lib.TJSValue, name string) int {
	found := e.propertyOf(v, name)
	defer lib.XFreeValue(e.tls, e.ctx, found)
	n, err := e.toGo(found)
	if f, ok := n.(float64); ok && err == nil {
		return int(f)
	}
	return 0
}

// validWTF8 returns a Go string that the engine can read: bytes that are not UTF-8 become
// U+FFFD, except the three bytes of a lone surrogate, which a script may have returned.
func validWTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r != utf8.RuneError || size > 1:
			b.WriteString(s[i : i+size])
		case isSurrogate(s[i:]):
			size = 3
			b.WriteString(s[i : i+size])
		default:
			b.WriteRune(utf8.RuneError)
		}
		i += size
	}
	return b.String()
}

func isSurrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80
}
