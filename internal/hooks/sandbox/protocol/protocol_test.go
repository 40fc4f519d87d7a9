package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func someRequest(t *rapid.T) *Request {
	text := rapid.String()
	block := rapid.SliceOf(rapid.Byte())
	var library []File
	for range rapid.IntRange(0, 3).Draw(t, "modules") {
		library = append(library, File{text.Draw(t, "name"), text.Draw(t, "source")})
	}
	return &Request{
		Check: rapid.Bool().Draw(t, "check"), Name: text.Draw(t, "name"), Source: text.Draw(t, "source"),
		Params: rapid.SliceOf(text).Draw(t, "params"), Library: library,
		Args: rapid.SliceOf(block).Draw(t, "args"),
		Limits: Limits{
			Wall: time.Duration(rapid.Int64().Draw(t, "wall")), CPU: time.Duration(rapid.Int64().Draw(t, "cpu")),
			Memory: rapid.Int64().Draw(t, "memory"), Stack: rapid.Int64().Draw(t, "stack"),
			Output: rapid.Int64().Draw(t, "output"), Console: rapid.Int64().Draw(t, "console"),
		},
		Fixed: rapid.Bool().Draw(t, "fixed"), Now: rapid.Int64().Draw(t, "now"), Seed: rapid.Uint64().Draw(t, "seed"),
	}
}

// A decoded request equals the encoded one. A request that is truncated or has a further
// byte is an error.
func TestRequestsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t)
		message := r.Append(nil)
		back, err := ReadRequest(message)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		cut := rapid.IntRange(0, len(message)-1).Draw(t, "cut")
		if _, err := ReadRequest(message[:cut]); err == nil {
			t.Fatal("a truncated message was decoded")
		}
		if _, err := ReadRequest(append(message, 0)); err == nil {
			t.Fatal("a message with a trailing byte was decoded")
		}
	})
}

func TestAnswersRoundTrip(t *testing.T) {
	t.Parallel()
	a := &Answer{
		Ask:  []byte(`{"op":"get"}`),
		Kind: Exception, Message: "m", File: "f", Line: 3, Column: 4, Stack: "s",
		Value: []byte("1"), Args: [][]byte{nil, []byte("{}")}, Audit: [][]byte{[]byte("2")},
		Console: []Line{{"log", "x"}}, Truncated: true, Wall: time.Second, CPU: time.Millisecond, Body: true,
	}
	back, err := ReadAnswer(a.Append(nil))
	if diff := cmp.Diff(a, back); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func frameOf(tb testing.TB, call uint64, message []byte) []byte {
	tb.Helper()
	frame, err := Finish(append(Begin(nil, call), message...))
	if err != nil {
		tb.Fatal(err)
	}
	return frame
}

// A reader accepts only complete frames of this protocol.
func TestFrames(t *testing.T) {
	t.Parallel()
	frame := frameOf(t, 7, []byte("message"))
	call, message, err := Read(bytes.NewReader(frame), 100)
	if err != nil || call != 7 || string(message) != "message" {
		t.Errorf("got %d %q %v", call, message, err)
	}
	if _, _, err := Read(bytes.NewReader(nil), 100); !errors.Is(err, io.EOF) {
		t.Errorf("Read at the end returned %v, want io.EOF", err)
	}
	for cut := 1; cut < len(frame); cut++ {
		if _, _, err := Read(bytes.NewReader(frame[:cut]), 100); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("after %d bytes: %v", cut, err)
		}
	}
	if _, _, err := Read(bytes.NewReader(frame), 6); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Read of a frame above the limit returned %v, want ErrTooLarge", err)
	}
	bad := bytes.Clone(frame)
	bad[0] = 'X'
	if _, _, err := Read(bytes.NewReader(bad), 100); err == nil {
		t.Error("a frame of a different protocol was read")
	}
}

// Read allocates at most 4 MiB for a frame that has a length of 1 GiB but no data.
func TestFalseLength(t *testing.T) {
	frame := frameOf(t, 1, nil)
	binary.BigEndian.PutUint32(frame[len(mark):], 1<<30)
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, _, err := Read(bytes.NewReader(frame), 1<<31); err == nil {
				b.Fatal("a frame without its message was read")
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 4<<20 {
		t.Errorf("a frame without data allocated %d bytes", allocated)
	}
}

// Any input is an error or decodes to a message that stays equal when it is encoded and
// decoded again.
func FuzzRead(f *testing.F) {
	f.Add(frameOf(f, 1, (&Request{Name: "a", Source: "b", Args: [][]byte{[]byte("{}")}}).Append(nil)))
	f.Add(frameOf(f, 2, (&Answer{Kind: Timeout, Console: []Line{{"log", "x"}}}).Append(nil)))
	f.Add(frameOf(f, 3, Setup{Memory: 1}.Append(nil)))
	f.Add([]byte("GWS\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		for {
			_, message, err := Read(r, 1<<20)
			if err != nil {
				return
			}
			if got, err := ReadRequest(message); err == nil {
				if again, err := ReadRequest(got.Append(nil)); err != nil || !cmp.Equal(got, again) {
					t.Errorf("read %+v, then %+v, %v", got, again, err)
				}
			}
			if got, err := ReadAnswer(message); err == nil {
				if again, err := ReadAnswer(got.Append(nil)); err != nil || !cmp.Equal(got, again) {
					t.Errorf("read %+v, then %+v, %v", got, again, err)
				}
			}
			_, _ = ReadSetup(message)
		}
	})
}
