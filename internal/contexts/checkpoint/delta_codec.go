package checkpoint

import (
	"bytes"
	"errors"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// dictID is the id of every dictionary; a frame with this id needs a dictionary.
	dictID = 1
	// minWindow and maxWindow bound the window of a frame.
	minWindow     = 1 << 14
	maxWindowBits = 26
	maxWindow     = 1 << maxWindowBits
	// maxDelta bounds the sum of the sizes of a content and its base. Larger contents are
	// stored whole to save memory.
	maxDelta = 32 << 20
)

// windowSize returns the smallest power of two that covers size bytes, but at least
// minWindow and at most maxWindow.
func windowSize(size int) int {
	return min(max(1<<bits.Len(uint(max(size, 1)-1)), minWindow), maxWindow)
}

// deltaCodec compresses and expands contents. It reuses encoders and decoders, whose creation
// is expensive; the zero value is ready.
type deltaCodec struct {
	whole sync.Pool // *zstd.Encoder, for contents without a base
	// deltas has the encoders for contents with a base, by the bits of their window.
	deltas   [maxWindowBits + 1]sync.Pool
	decoders sync.Pool // *zstd.Decoder
	buffers  sync.Pool // *[]byte, for temporary contents
}

// poolWindow is the largest window of a reused encoder.
const poolWindow = 8 << 20

// encodeContent compresses content. If base is not empty, it returns the delta against
// base.
func (s *deltaCodec) encodeContent(raw, base []byte) ([]byte, error) {
	switch size := windowSize(len(raw) + len(base)); {
	case size > poolWindow || len(base) > 0 && len(raw) >= oneBlock:
		encoder, err := newEncoder(size, base)
		if err != nil {
			return nil, err
		}
		defer encoder.Close()
		return encoder.EncodeAll(raw, make([]byte, 0, len(raw)/16+256)), nil
	case len(base) > 0:
		return s.encodeDelta(raw, base, size)
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

// oneBlock is the size from which content has several blocks. For content of a single block
// a stream produces the same output as EncodeAll, including the length.
const oneBlock = 128 << 10

// encodeDelta compresses content of one block against a base. It uses a stream, because
// setting the base resets the stream; any other call would read the base twice.
func (s *deltaCodec) encodeDelta(raw, base []byte, size int) ([]byte, error) {
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
	level := zstd.SpeedDefault
	if len(base) == 0 {
		level = zstd.SpeedFastest // a save waits for it; most contents are stored again as deltas
	}
	options := []zstd.EOption{
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level),
		zstd.WithEncoderCRC(false),   // the blob header contains a SHA-256
		zstd.WithSingleSegment(true), // a single segment includes the length of the content
		zstd.WithWindowSize(window),
	}
	if len(base) > 0 {
		options = append(options, zstd.WithEncoderDictRaw(dictID, base))
	}
	return zstd.NewWriter(nil, options...)
}

var errWrongLength = errors.New("unexpected length")

// decodeContent decompresses a content, into the given buffer if it is large enough. size is the
// expected length; nothing larger is allocated.
func (s *deltaCodec) decodeContent(into, packed, base []byte, size int64) ([]byte, error) {
	var frame zstd.Header
	if err := frame.Decode(packed); err != nil {
		return nil, err
	}
	if !frame.HasFCS || frame.FrameContentSize != uint64(size) {
		return nil, errWrongLength
	}
	decoder, err := s.newDecoder(base, max(int(size), windowSize(int(size)+len(base))))
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

// newDecoder returns a decoder for contents with the given base. most limits its memory in
// bytes.
func (s *deltaCodec) newDecoder(base []byte, most int) (*zstd.Decoder, error) {
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

// takeBuffer returns a buffer for temporary content. The caller must release it.
func (s *deltaCodec) takeBuffer() []byte {
	if kept, ok := s.buffers.Get().(*[]byte); ok {
		return (*kept)[:0]
	}
	return nil
}

// releaseBuffer returns a buffer to the pool unless it is very large.
func (s *deltaCodec) releaseBuffer(buffer []byte) {
	if cap(buffer) > 0 && cap(buffer) <= poolWindow {
		s.buffers.Put(&buffer)
	}
}
