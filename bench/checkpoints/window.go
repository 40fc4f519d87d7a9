package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway/internal/window"
)

// window measures compression to a quarter, and classification.
func (b *bench) window(_ context.Context, t *table) error {
	compression, classification := level{"10 / 20 / 50 / 100", "-"}, level{"1 / 5 / 10 / 50", "-"}
	tokenizer := window.NewTokenizer()
	tokenizer.Count("loaded") // that is the process's affair, once
	classifier := window.NewClassifier(window.Hints{})
	compress := func(took *times, c window.Context, counter window.Counter) error {
		return took.call(func() error {
			items := window.Items(c, classifier, counter, window.History{})
			window.Compress(items, window.Options{Ratio: 4, Counter: counter, Question: "which test fails and why"})
			return nil
		})
	}
	first, next, many, classified := &times{}, &times{}, &times{}, &times{}
	for seed := range b.less(20, 3) {
		counter := window.NewCache(tokenizer, 0)
		for i, text := range contextsOf(uint64(seed), 11, fresh) {
			c, err := spread(text)
			if err != nil {
				return err
			}
			took := next
			if i == 0 {
				took = first
			}
			if err := compress(took, c, counter); err != nil {
				return err
			}
			for range 5 {
				if err := classified.call(func() error {
					for key, value := range c {
						classifier.Classify(key, value)
					}
					return nil
				}); err != nil {
					return err
				}
			}
		}
	}
	counter := window.NewCache(tokenizer, 0)
	err := together(clients, func(client int) error {
		for i, text := range contextsOf(uint64(100+client), b.less(21, 4), fresh) {
			c, err := spread(text)
			if err != nil {
				return err
			}
			took := many
			if i == 0 {
				took = &times{} // it fills the cache
			}
			if err := compress(took, c, counter); err != nil {
				return err
			}
		}
		return nil
	})
	t.level("compress to a quarter, one client", next, compression)
	t.level("compress to a quarter, 8 clients at once", many, compression)
	t.level("compress to a quarter, cold: no token counted before", first, compression)
	t.level("classify all items", classified, classification)
	return err
}

// spread makes items of the lists of a context, as a context of many variables has
// them.
func spread(text json.RawMessage) (window.Context, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	c := window.Context{}
	for key, value := range all {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			c[key] = value
			continue
		}
		const piece = 20 // lines of code and of logs stay together
		for i := 0; i < len(list); i += piece {
			part, err := json.Marshal(list[i:min(i+piece, len(list))])
			if err != nil {
				return nil, err
			}
			c[fmt.Sprint(key, i/piece)] = part
		}
	}
	return c, nil
}
