package checkpoint

import (
	"errors"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// dictID is that of every dictionary: a frame says that it needs one.
	dictID = 1
	// minWindow and maxWindow bound how far back a frame looks.
	minWindow = 1 << 14
	maxWindow = 64 << 20
	// maxDelta bounds the two contents of a delta, together. A larger content is
	// stored whole: the memory that it would take is not worth it.
	maxDelta = 32 << 20
)

// window is the smallest that covers so many bytes.
func window(size int) int {
	return min(max(1<<bits.Len(uint(max(size, 1)-1)), minWindow), maxWindow)
}

// squeezer compresses. It keeps encoders for contents without a base, which is
// what most of their cost is; the zero value is ready.
type squeezer struct{ idle sync.Pool }

// poolWindow is the largest content that a kept encoder is for.
const poolWindow = 8 << 20

// squeeze compresses a content; with a base it is what differs from that.
func (s *squeezer) squeeze(raw, base []byte) ([]byte, error) {
	if len(base) > 0 || len(raw) > poolWindow {
		encoder, err := newEncoder(window(len(raw)+len(base)), base)
		if err != nil {
			return nil, err
		}
		defer encoder.Close()
		return encoder.EncodeAll(raw, make([]byte, 0, len(raw)/16+256)), nil
	}
	encoder, ok := s.idle.Get().(*zstd.Encoder)
	if !ok {
		var err error
		if encoder, err = newEncoder(poolWindow, nil); err != nil {
			return nil, err
		}
	}
	defer s.idle.Put(encoder)
	return encoder.EncodeAll(raw, make([]byte, 0, len(raw)/2+64)), nil
}

func newEncoder(window int, base []byte) (*zstd.Encoder, error) {
	options := []zstd.EOption{
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithEncoderCRC(false),   // there is a SHA-256
		zstd.WithSingleSegment(true), // it then says how long the content is
		zstd.WithWindowSize(window),
	}
	if len(base) > 0 {
		options = append(options, zstd.WithEncoderDictRaw(dictID, base))
	}
	return zstd.NewWriter(nil, options...)
}

var errWrongLength = errors.New("it does not have the length that it should have")

// expand is the way back. size is the length that must come out; nothing larger
// is ever made.
func expand(packed, base []byte, size int64) ([]byte, error) {
	var frame zstd.Header
	if err := frame.Decode(packed); err != nil {
		return nil, err
	}
	if !frame.HasFCS || frame.FrameContentSize != uint64(size) {
		return nil, errWrongLength
	}
	options := []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(uint64(max(int(size), window(int(size)+len(base))))),
	}
	if len(base) > 0 {
		options = append(options, zstd.WithDecoderDictRaw(dictID, base))
	}
	decoder, err := zstd.NewReader(nil, options...)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	raw, err := decoder.DecodeAll(packed, make([]byte, 0, size))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) != size {
		return nil, errWrongLength
	}
	return raw, nil
}
