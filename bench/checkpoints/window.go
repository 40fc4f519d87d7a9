package checkpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/guideway-dev/guideway/bench/measure"
	ctxcompress "github.com/guideway-dev/guideway/internal/contexts/compress"
)

// measureWindow measures compression to a quarter, and classification.
func (b *bench) measureWindow(_ context.Context, t *table) error {
	compression, classification := level{"10 / 20 / 50 / 100", "-"}, level{"1 / 5 / 10 / 50", "-"}
	tokenizer := ctxcompress.NewTokenizer()
	tokenizer.Count("loaded") // loading the tokenizer is a cost per process, not per call
	classifier, stems := ctxcompress.NewClassifier(ctxcompress.Hints{}), ctxcompress.NewStemCache()
	compress := func(took *measure.Times, c ctxcompress.Context) error {
		return took.Call(func() error {
			items := ctxcompress.Items(c, classifier, tokenizer)
			ctxcompress.Compress(items, ctxcompress.Options{Ratio: 4, Counter: tokenizer, Stems: stems, Question: "which test fails and why"})
			return nil
		})
	}
	first, next, many, classified, unknown := &measure.Times{}, &measure.Times{}, &measure.Times{}, &measure.Times{}, &measure.Times{}
	for seed := range b.Pick(20, 3) {
		for i, text := range contextsOf(uint64(seed), 11, newShare) {
			c, err := spreadLists(text)
			if err != nil {
				return err
			}
			took := next
			if i == 0 {
				took = first
			}
			if err := compress(took, c); err != nil {
				return err
			}
			for range 5 {
				measureClassify(classified, classifier, c, func(key string) string { return key })
				measureClassify(unknown, classifier, c, func(key string) string { return "x" + key })
			}
		}
	}
	err := measure.RunClients(clients, func(client int) error {
		for i, text := range contextsOf(uint64(100+client), b.Pick(21, 4), newShare) {
			c, err := spreadLists(text)
			if err != nil {
				return err
			}
			took := many
			if i == 0 {
				took = &measure.Times{} // the first call also counts the pieces of a new context
			}
			if err := compress(took, c); err != nil {
				return err
			}
		}
		return nil
	})
	t.addLevel("compress to a quarter, one client", next, compression)
	t.addLevel("compress to a quarter, 8 clients at once", many, compression)
	t.addLevel("compress to a quarter, a new context", first, compression)
	t.addLevel("classify all items", classified, classification)
	t.addLevel("classify all items, by their content alone", unknown, classification)
	return err
}

// measureClassify measures the classification of all items under the given names.
func measureClassify(took *measure.Times, classifier *ctxcompress.Classifier, c ctxcompress.Context, name func(key string) string) {
	named := ctxcompress.Context{}
	for key, value := range c {
		named[name(key)] = value
	}
	_ = took.Call(func() error { // classification cannot fail
		for key, value := range named {
			classifier.Classify(key, value)
		}
		return nil
	})
}

// spreadLists splits the lists of a context into variables: some consecutive lines of code,
// logs and turns stay together. The content determines the boundaries, so that most
// variables stay unchanged when a list grows or its start is dropped.
func spreadLists(text json.RawMessage) (ctxcompress.Context, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	c := ctxcompress.Context{}
	for key, value := range all {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			c[key] = value
			continue
		}
		for from, at := 0, 1; at <= len(list); at++ {
			if at < len(list) && crc32.ChecksumIEEE(list[at])%20 != 0 {
				continue
			}
			part, err := json.Marshal(list[from:at])
			if err != nil {
				return nil, err
			}
			c[fmt.Sprint(key, from)] = part
			from = at
		}
	}
	return c, nil
}
