package catalog

import "github.com/klauspost/compress/s2"

// lazyText is the text of a definition that was not needed yet; the zero value has none.
// Most definitions are never needed, so the text can be compressed, to a quarter of its
// size.
type lazyText struct {
	bytes    []byte
	isPacked bool
}

// packed returns the compressed text, or the unchanged text if compression saves less than
// a quarter.
func (k lazyText) packed() lazyText {
	if k.isPacked || k.bytes == nil {
		return k
	}
	small := s2.Encode(nil, k.bytes)
	if len(small) > len(k.bytes)*3/4 {
		return k
	}
	return lazyText{bytes: append(make([]byte, 0, len(small)), small...), isPacked: true}
}

// readText returns the text, or nil.
func (k lazyText) readText() ([]byte, error) {
	if !k.isPacked {
		return k.bytes, nil
	}
	return s2.Decode(nil, k.bytes)
}

// Pack compresses the texts of definitions that were not needed yet. A process calls it
// before it waits for calls.
func (c *Catalog) Pack() {
	c.loading.Lock()
	defer c.loading.Unlock()
	for i := range c.states {
		for _, r := range c.states[i].records {
			if r.good != nil {
				r.good.packText()
			}
		}
	}
}
