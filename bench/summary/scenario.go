package summary

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// scenario is a run with planted facts.
type scenario struct {
	name    string
	outputs []string
	// refused maps a step to the outputs that are refused before its output.
	refused map[int][]string
	facts   []fact
	loop    bool
}

// newScenario plants facts evenly into the outputs of a run, but not into its last ten steps
// unless the run is short.
func newScenario(name string, steps int, output func(i int) string) scenario {
	s := scenario{name: name, refused: map[int][]string{}}
	for i := range steps {
		s.outputs = append(s.outputs, output(i))
	}
	each, places := 10, steps-10
	if steps < 20 {
		each, places = 1, steps
	}
	s.facts = plantedFacts(each)
	for i, f := range s.facts {
		at := i * places / len(s.facts)
		if f.kind == kindRefused {
			s.refused[at] = append(s.refused[at], refusedMark+f.text)
			continue
		}
		s.outputs[at] = plantSentence(s.outputs[at], f.text)
	}
	return s
}

// plantSentence inserts a sentence between the paragraphs of a text, or after a short text.
func plantSentence(text, sentence string) string {
	paragraphs := strings.Split(text, "\n\n")
	if len(paragraphs) == 1 {
		return text + " " + sentence
	}
	return strings.Join(slices.Insert(paragraphs, len(paragraphs)/2, sentence), "\n\n")
}

// scenarios returns the synthetic runs and, if there is a corpus, those with its texts. skip
// is the reason if it returns no scenario.
func scenarios(corpus string) (list []scenario, skip string) {
	list = []scenario{
		newScenario("12 steps", 12, sampleOutput), newScenario("100 steps", 100, sampleOutput),
		newScenario("500 steps", 500, sampleOutput), newScenario("100 rounds", 100, roundOutput),
	}
	list[3].loop = true
	texts, err := corpusTexts(corpus)
	if err != nil {
		return list, err.Error()
	}
	// Each step has an excerpt of one text: the texts are used in turn.
	excerpt := func(i int) string { return texts[i%len(texts)] }
	same := func(i int) string { return fmt.Sprintf("## Round %d\n\n%s", i+1, texts[i%3]) }
	loop := newScenario("corpus 100 rounds", 100, same)
	loop.loop = true
	return append(list, newScenario("corpus 12 steps", 12, excerpt), newScenario("corpus 100 steps", 100, excerpt),
		newScenario("corpus 500 steps", 500, excerpt), loop), ""
}

// corpusTexts returns excerpts of at most 900 characters from the guides and prompts of a
// corpus.
func corpusTexts(dir string) ([]string, error) {
	var texts []string
	add := func(text string) {
		var b strings.Builder
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			if b.Len() > 0 && b.Len()+len(paragraph) > 900 {
				texts = append(texts, strings.TrimSpace(b.String()))
				b.Reset()
			}
			if len(paragraph) <= 900 {
				b.WriteString(paragraph + "\n\n")
			}
		}
		if b.Len() >= 300 {
			texts = append(texts, strings.TrimSpace(b.String()))
		}
	}
	workflows, err := filepath.Glob(filepath.Join(dir, "steps", "workflows", "*.json"))
	if err != nil || len(workflows) == 0 {
		return nil, fmt.Errorf("runs with texts of the corpus are not measured: %s has no workflows", dir)
	}
	for _, file := range workflows {
		text, err := os.ReadFile(file) //nolint:gosec // G304: a file of the corpus
		if err != nil {
			return nil, fmt.Errorf("read the corpus: %w", err)
		}
		var def struct{ Steps []struct{ Prompt string } }
		if err := json.Unmarshal(text, &def); err != nil {
			continue
		}
		for _, s := range def.Steps {
			add(s.Prompt)
		}
	}
	guides, err := filepath.Glob(filepath.Join(dir, "phases", "*", "guides", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, file := range guides {
		text, err := os.ReadFile(file) //nolint:gosec // G304: a file of the corpus
		if err != nil {
			return nil, fmt.Errorf("read the corpus: %w", err)
		}
		add(string(text))
	}
	return texts, nil
}
