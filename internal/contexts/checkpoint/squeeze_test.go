package checkpoint

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/conversation"
)

// TestSqueezerIsUsedAgain: what is kept of one content changes nothing for the next:
// contents of one block and of several, with a base and without, by many at once, come
// back as they were, and take no more than they do alone.
func TestSqueezerIsUsedAgain(t *testing.T) {
	t.Parallel()
	var s squeezer
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
					packed, err := s.squeeze(raw, base)
					if err != nil {
						t.Error(err)
						return
					}
					var fresh squeezer
					alone, err := fresh.squeeze(raw, base)
					if err != nil || !bytes.Equal(packed, alone) {
						t.Errorf("%d bytes take %d, alone %d (%v)", len(raw), len(packed), len(alone), err)
					}
					buffer := s.buffer()
					back, err := s.expand(buffer, packed, base, int64(len(raw)))
					if err != nil || !bytes.Equal(back, raw) {
						t.Errorf("%d bytes do not come back: %v", len(raw), err)
					}
					if _, err := s.expand(nil, packed, base, int64(len(raw))+1); err == nil {
						t.Errorf("%d bytes come back as one more", len(raw))
					}
					s.release(back)
				}
			}
		})
	}
	group.Wait()
}

// TestSqueezerForgetsTheBase: a content that needs a base does not come back without
// it, also where the decoder has had it before.
func TestSqueezerForgetsTheBase(t *testing.T) {
	t.Parallel()
	var s squeezer
	talk := conversation.New(1, 50_000, 0.1)
	base, raw := []byte(talk.Next()), []byte(talk.Next())
	packed, err := s.squeeze(raw, base)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range [][]byte{base, nil, raw, base} {
		back, err := s.expand(nil, packed, other, int64(len(raw)))
		if same := err == nil && bytes.Equal(back, raw); same != bytes.Equal(other, base) {
			t.Errorf("with a base of %d bytes it comes back: %v (%v)", len(other), same, err)
		}
	}
}
