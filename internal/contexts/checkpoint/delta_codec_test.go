package checkpoint

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/conversation"
)

// TestDeltaCodecIsReusable checks that a codec in concurrent use encodes contents like a new
// codec, with and without a base, that they round-trip, and that a wrong length is refused.
func TestDeltaCodecIsReusable(t *testing.T) {
	t.Parallel()
	var s deltaCodec
	var group sync.WaitGroup
	for client := range 3 {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 1))
			sizes := []int{2, 300, 20_000, oneBlock - 1, oneBlock, 300_000, 100_000, 5}
			if testing.Short() {
				sizes = []int{300, 20_000, oneBlock, 5}
			}
			for _, size := range sizes {
				talk := conversation.New(uint64(client*size), size, 0.1)
				base, raw := []byte(talk.Next()), []byte(talk.Next())
				if size < 1000 || size >= oneBlock-1 && size <= oneBlock {
					raw = make([]byte, size)
					for i := range raw {
						raw[i] = base[rng.IntN(len(base))]
					}
				}
				for _, base := range [][]byte{nil, base} {
					packed, err := s.encodeContent(raw, base)
					if err != nil {
						t.Error(err)
						return
					}
					var fresh deltaCodec
					alone, err := fresh.encodeContent(raw, base)
					if err != nil || !bytes.Equal(packed, alone) {
						t.Errorf("%d bytes are encoded in %d bytes, with a new encoder in %d (%v)", len(raw), len(packed), len(alone), err)
					}
					buffer := s.takeBuffer()
					back, err := s.decodeContent(buffer, packed, base, int64(len(raw)))
					if err != nil || !bytes.Equal(back, raw) {
						t.Errorf("%d bytes do not round-trip: %v", len(raw), err)
					}
					if _, err := s.decodeContent(nil, packed, base, int64(len(raw))+1); err == nil {
						t.Errorf("%d bytes were decoded although the length differs", len(raw))
					}
					s.releaseBuffer(back)
				}
			}
		})
	}
	group.Wait()
}

// TestDeltaCodecForgetsBase checks that a delta cannot be read without its base, even if
// the decoder has used the base before.
func TestDeltaCodecForgetsBase(t *testing.T) {
	t.Parallel()
	var s deltaCodec
	talk := conversation.New(1, 50_000, 0.1)
	base, raw := []byte(talk.Next()), []byte(talk.Next())
	packed, err := s.encodeContent(raw, base)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range [][]byte{base, nil, raw, base} {
		back, err := s.decodeContent(nil, packed, other, int64(len(raw)))
		if same := err == nil && bytes.Equal(back, raw); same != bytes.Equal(other, base) {
			t.Errorf("with a base of %d bytes the content is decoded: %v (%v)", len(other), same, err)
		}
	}
}
