package checkpoint

import (
	"bytes"
	"errors"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// dictID is that of every dictionary: a frame says that it needs one.
	dictID = 1
	// minWindow and maxWindow bound how far back a frame looks.
	minWindow     = 1 << 14
	maxWindowBits = 26
	maxWindow     = 1 << maxWindowBits
	// maxDelta bounds the two contents of a delta, together. A larger content is
	// stored whole: the memory that it would take is not worth it.
	maxDelta = 32 << 20
)

// window is the smallest that covers so many bytes.
func window(size int) int {
	return min(max(1<<bits.Len(uint(max(size, 1)-1)), minWindow), maxWindow)
}

// squeezer compresses and expands. It keeps encoders and decoders, which is what most
// of their cost is; the zero value is ready.
type squeezer struct {
	whole sync.Pool // *zstd.Encoder, for contents without a base
	// deltas are for contents with one, by the bits of their window.
	deltas   [maxWindowBits + 1]sync.Pool
	decoders sync.Pool // *zstd.Decoder
	buffers  sync.Pool // *[]byte, for contents that nobody keeps
}

// poolWindow is the largest window that a kept encoder has.
const poolWindow = 8 << 20

// squeeze compresses a content; with a base it is what differs from that.
func (s *squeezer) squeeze(raw, base []byte) ([]byte, error) {
	switch size := window(len(raw) + len(base)); {
	case size > poolWindow || len(base) > 0 && len(raw) >= oneBlock:
		encoder, err := newEncoder(size, base)
		if err != nil {
			return nil, err
		}
		defer encoder.Close()
		return encoder.EncodeAll(raw, make([]byte, 0, len(raw)/16+256)), nil
	case len(base) > 0:
		return s.delta(raw, base, size)
	}
	encoder, ok := s.whole.Get().(*zstd.Encoder)
	if !ok {
		var err error
		if encoder, err = newEncoder(poolWindow, nil); err != nil {
			return nil, err
		}
	}
	defer s.whole.Put(encoder)
	return encoder.EncodeAll(raw, make([]byte, 0, len(raw)/2+64)), nil
}

// oneBlock is from where on a content has several blocks. Written to a stream, one of
// a single block comes out as EncodeAll has it, its length included.
const oneBlock = 128 << 10

// delta compresses a content of one block against a base. It is written as a stream: to
// give an encoder another base makes the stream ready for it, so that anything else
// would read the base twice.
func (s *squeezer) delta(raw, base []byte, size int) ([]byte, error) {
	pool, out := &s.deltas[bits.Len(uint(size))-1], bytes.NewBuffer(make([]byte, 0, len(raw)/16+256))
	encoder, ok := pool.Get().(*zstd.Encoder)
	var err error
	if ok {
		err = encoder.ResetWithOptions(out, zstd.WithEncoderDictRaw(dictID, base))
	} else if encoder, err = newEncoder(size, base); err == nil {
		encoder.Reset(out)
	}
	if err != nil {
		return nil, err
	}
	defer pool.Put(encoder)
	if _, err := encoder.Write(raw); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
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

// expand is the way back, into a buffer where it has the room. size is the length that
// must come out; nothing larger is ever made.
func (s *squeezer) expand(into, packed, base []byte, size int64) ([]byte, error) {
	var frame zstd.Header
	if err := frame.Decode(packed); err != nil {
		return nil, err
	}
	if !frame.HasFCS || frame.FrameContentSize != uint64(size) {
		return nil, errWrongLength
	}
	decoder, err := s.decoder(base, max(int(size), window(int(size)+len(base))))
	if err != nil {
		return nil, err
	}
	defer s.decoders.Put(decoder)
	if int64(cap(into)) < size {
		into = make([]byte, 0, size)
	}
	raw, err := decoder.DecodeAll(packed, into[:0])
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) != size {
		return nil, errWrongLength
	}
	return raw, nil
}

// decoder gives a decoder for contents with a base, which may make so many bytes.
func (s *squeezer) decoder(base []byte, most int) (*zstd.Decoder, error) {
	options := []zstd.DOption{zstd.WithDecoderMaxMemory(uint64(most)), zstd.WithDecoderDictDelete()}
	if len(base) > 0 {
		options = append(options, zstd.WithDecoderDictRaw(dictID, base))
	}
	if decoder, ok := s.decoders.Get().(*zstd.Decoder); ok {
		return decoder, decoder.ResetWithOptions(nil, options...)
	}
	return zstd.NewReader(nil, append(options,
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))...)
}

// buffer gives room for a content that nobody keeps; it is given back by release.
func (s *squeezer) buffer() []byte {
	if kept, ok := s.buffers.Get().(*[]byte); ok {
		return (*kept)[:0]
	}
	return nil
}

// release takes a buffer back, if it is not one that only a huge content needs.
func (s *squeezer) release(buffer []byte) {
	if cap(buffer) > 0 && cap(buffer) <= poolWindow {
		s.buffers.Put(&buffer)
	}
}
