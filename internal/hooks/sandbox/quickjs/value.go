package quickjs

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// Value is a value of an engine. It is good until the engine is put back to an
// image that is older than it.
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

func (e *Engine) free(v Value) { lib.XFreeValue(e.tls, e.ctx, v.v) }

// result is what C gave, or what was thrown.
func (e *Engine) result(v lib.TJSValue) (Value, error) {
	if isException(v) {
		return Value{undefined}, e.thrown()
	}
	return Value{v}, nil
}

// payload is the union of a value: 64 bits, of which a number or a truth takes
// the lower half.
func payload(v *lib.TJSValue) *uint64 { return (*uint64)(unsafe.Pointer(v)) }

// give makes a value of what Go has.
func (e *Engine) give(from any) (v lib.TJSValue) {
	switch from := from.(type) {
	case string:
		return e.giveString(from)
	case float64:
		*(*float64)(unsafe.Pointer(&v)) = from
		v.Ftag = lib.EJS_TAG_FLOAT64
	case bool:
		if from {
			*payload(&v) = 1
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

// take makes what Go has of a value: a string, a float64, a bool, or nil. A lone
// surrogate in a string becomes the three bytes of its code point.
func (e *Engine) take(v lib.TJSValue) (any, error) {
	switch v.Ftag {
	case lib.EJS_TAG_STRING, lib.EJS_TAG_STRING_ROPE:
		return e.takeString(v)
	case lib.EJS_TAG_INT:
		return float64(int32(*payload(&v))), nil
	case lib.EJS_TAG_FLOAT64:
		return *(*float64)(unsafe.Pointer(&v)), nil
	case lib.EJS_TAG_BOOL:
		return int32(*payload(&v)) != 0, nil
	}
	return nil, nil
}

func (e *Engine) takeString(v lib.TJSValue) (string, error) {
	if s, ok := e.read(v); ok {
		return s, nil
	}
	return "", e.thrown()
}

// read is a value as a string. What it throws, and so not ok, is left pending.
func (e *Engine) read(v lib.TJSValue) (s string, ok bool) {
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

// Error is what a script threw, as far as it can be told.
type Error struct {
	// Name and Message are those of an Error; the name is empty where something
	// else was thrown.
	Name, Message string
	// Stack has a line for each call; the place is that of a SyntaxError.
	Stack, File  string
	Line, Column int
	text         string
}

// Error is the thrown value as a string.
func (e *Error) Error() string { return e.text }

// thrown takes what was thrown. Getters of the value may run; what they throw is
// dropped.
func (e *Engine) thrown() error {
	v := lib.XJS_GetException(e.tls, e.ctx)
	defer lib.XFreeValue(e.tls, e.ctx, v)
	told := &Error{
		Name: e.text(v, "name"), Message: e.text(v, "message"), Stack: e.text(v, "stack"),
		File: e.text(v, "fileName"), Line: e.number(v, "lineNumber"), Column: e.number(v, "columnNumber"),
	}
	var ok bool
	if told.text, ok = e.read(v); !ok {
		e.drop()
		told.text = strings.TrimSuffix(told.Name+": "+told.Message, ": ")
	}
	return told
}

// drop forgets what is thrown.
func (e *Engine) drop() {
	lib.XFreeValue(e.tls, e.ctx, lib.XJS_GetException(e.tls, e.ctx))
}

// property is a property of a thrown value; undefined where it cannot be had.
func (e *Engine) property(v lib.TJSValue, name string) lib.TJSValue {
	text, err := libc.CString(name)
	if err != nil {
		return undefined
	}
	defer libc.Xfree(e.tls, text)
	found := lib.XJS_GetPropertyStr(e.tls, e.ctx, v, text)
	if isException(found) {
		e.drop()
		return undefined
	}
	return found
}

// text is a property that is a string, and empty otherwise.
func (e *Engine) text(v lib.TJSValue, name string) string {
	found := e.property(v, name)
	defer lib.XFreeValue(e.tls, e.ctx, found)
	if found.Ftag != lib.EJS_TAG_STRING && found.Ftag != lib.EJS_TAG_STRING_ROPE {
		return ""
	}
	s, ok := e.read(found)
	if !ok {
		e.drop()
	}
	return s
}

// number is a property that is a number, and 0 otherwise.
func (e *Engine) number(v lib.TJSValue, name string) int {
	found := e.property(v, name)
	defer lib.XFreeValue(e.tls, e.ctx, found)
	n, err := e.take(found)
	if f, ok := n.(float64); ok && err == nil {
		return int(f)
	}
	return 0
}

// validWTF8 makes a Go string one that the engine reads as it is: bytes that are
// no UTF-8 become U+FFFD, but the three bytes of a lone surrogate, which a script
// may have given.
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
