package catalog

import "github.com/klauspost/compress/s2"

// kept is a text that is kept until its definition is asked for; the zero value is
// none. Most are never asked for, so it can be packed to a quarter.
type kept struct {
	bytes  []byte
	packed bool
}

// pack makes a text small, unless that gains nothing.
func (k kept) pack() kept {
	if k.packed || k.bytes == nil {
		return k
	}
	small := s2.Encode(nil, k.bytes)
	if len(small) > len(k.bytes)*3/4 {
		return k
	}
	return kept{bytes: append(make([]byte, 0, len(small)), small...), packed: true}
}

// text gives the text, or nil where there is none.
func (k kept) text() ([]byte, error) {
	if !k.packed {
		return k.bytes, nil
	}
	return s2.Decode(nil, k.bytes)
}

// Pack makes small in memory what nobody has asked for yet. It is for a process that
// is about to wait.
func (c *Catalog) Pack() {
	c.loading.Lock()
	defer c.loading.Unlock()
	for i := range c.states {
		for _, r := range c.states[i].records {
			if r.good != nil {
				r.good.pack()
			}
		}
	}
}
