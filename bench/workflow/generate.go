package workflow

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// The workflows to walk: some steps, a loop of three steps, and some more steps.
const (
	aroundLoop = 3
	inLoop     = 3
	loopRounds = 20
	longRounds = 100
	loopLength = aroundLoop + inLoop*loopRounds + aroundLoop
	longLength = aroundLoop + inLoop*longRounds + aroundLoop
	// lateSteps is the distance from the end at which the long walk is measured: the second
	// step of the last round.
	lateSteps = aroundLoop + 2
)

func loopWalk(echoes bool) *walker {
	return &walker{workflow: "bench-loop", echoes: echoes, length: loopLength}
}

func longWalk() *walker {
	return &walker{workflow: "bench-long", echoes: true, length: longLength}
}

// loopDocument returns a workflow whose walk needs no variables.
func loopDocument(id string, rounds int) document {
	g := newGenerator(uint64(rounds))
	d := g.newDocument(id, "Walk through a loop")
	for i := range aroundLoop {
		d.Steps = append(d.Steps, g.newStep(fmt.Sprintf("before-%d", i+1), ""))
	}
	each := step{
		ID: "each-round", Type: "loop", Title: "Go through the rounds",
		Loop: &loop{Type: "for", Count: rounds, MaxIterations: rounds, IterationVar: "round"},
	}
	for i := range inLoop {
		each.Body = append(each.Body, g.bodyStep(fmt.Sprintf("round-%d", i+1), "This is round {{round}}."))
	}
	d.Steps = append(d.Steps, each)
	for i := range aroundLoop {
		d.Steps = append(d.Steps, g.newStep(fmt.Sprintf("after-%d", i+1), ""))
	}
	return d
}

// mixedDocument returns the workflow with the given number; workflows with higher numbers
// are longer.
func mixedDocument(i int) document {
	g := newGenerator(uint64(i))
	size := 10_000 + 48_000*i/workflowCount
	d := g.newDocument(fmt.Sprintf("bench-mixed-%02d", i), fmt.Sprintf("Mixed work %d", i))
	d.Steps = append(d.Steps, g.newStep("frame", "Set in `context`: `size` (string: small, medium or large)."))
	for part := 1; ; part++ {
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil || len(text) >= size {
			return d
		}
		d.Steps = append(d.Steps, g.nextPart(part)...)
	}
}

// generator generates workflows that are the same in every measurement.
type generator struct{ random *rand.Rand }

func newGenerator(seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // every run must generate the same texts
}

func (g *generator) newDocument(id, name string) document {
	return document{
		ID: id, Name: name, Version: "1.0.0",
		Description:          g.randomText(200),
		Preconditions:        g.randomSentences(2),
		ClarificationPrompts: g.randomSentences(2),
		MetaGuidance:         g.randomSentences(4),
		FunctionDefinitions:  []function{{Name: "verify", Definition: g.randomText(500)}},
	}
}

// nextPart returns a few steps of one kind; the kinds alternate.
func (g *generator) nextPart(n int) []step {
	id := func(name string) string { return fmt.Sprintf("%s-%d", name, n) }
	variable := func(name string) string { return fmt.Sprintf("%s%d", name, n) }
	switch n % 5 {
	case 1:
		only := g.newStep(id("small"), "")
		only.RunCondition = condition{"var": "size", "equals": "small"}
		large := g.newStep(id("large"), "")
		large.RunCondition = condition{"or": []any{
			condition{"var": "size", "equals": "large"},
			condition{"and": []any{condition{"var": "size", "equals": "medium"}, condition{"not": condition{"var": "skipReview"}}}},
		}}
		ask := g.newStep(id("ask"), "Set in `context`: `skipReview` (boolean).")
		return []step{ask, only, large}
	case 2:
		items := variable("items")
		return []step{
			g.newStep(id("collect"), fmt.Sprintf("Set in `context`: `%s` (list of strings).", items)),
			g.newLoop(id("each"), &loop{Type: "forEach", Items: items, MaxIterations: 50, ItemVar: "item", IndexVar: "index"}, "Work on {{item}}, which is number {{index + 1}}."),
		}
	case 3:
		open := variable("openQuestions")
		return []step{
			g.newStep(id("ask-first"), fmt.Sprintf("Set in `context`: `%s` (number).", open)),
			g.newLoop(id("while-open"), &loop{Type: "while", Condition: condition{"var": open, "gt": 0}, MaxIterations: 10},
				fmt.Sprintf("Set in `context`: `%s` (number) to what is still open.", open)),
		}
	case 4:
		count := variable("slices")
		return []step{
			g.newStep(id("cut"), fmt.Sprintf("Set in `context`: `%s` (number).", count)),
			g.newLoop(id("slice"), &loop{Type: "for", Count: count, MaxIterations: 30, IterationVar: "slice"}, "This is slice {{slice}}."),
		}
	default:
		state := variable("state")
		hard := g.newStep(id("confirm"), fmt.Sprintf("Set in `context`: `%s` (string: open or done).", state))
		hard.RequireConfirmation = true
		return []step{hard, g.newLoop(id("until-done"), &loop{Type: "until", Condition: condition{"var": state, "equals": "done"}, MaxIterations: 8},
			fmt.Sprintf("Set in `context`: `%s` (string: open or done).", state))}
	}
}

func (g *generator) newLoop(id string, l *loop, each string) step {
	return step{
		ID: id, Type: "loop", Title: "Repeat the work of " + id, Loop: l,
		Body: []step{g.bodyStep(id+"-look", ""), g.bodyStep(id+"-work", each)},
	}
}

// newStep returns a step of the top level; last is the end of its prompt.
func (g *generator) newStep(id, last string) step {
	s := g.bodyStep(id, last)
	s.Prompt = g.randomText(700+g.random.IntN(900)) + "\n\n" + s.Prompt
	s.AgentRole = "You are a careful engineer. " + g.randomText(120)
	s.Guidance = g.randomSentences(2)
	return s
}

func (g *generator) bodyStep(id, last string) step {
	heading := g.randomHeading()
	prompt := g.randomText(300+g.random.IntN(500)) +
		"\n\n- " + heading + ": each one as path:line.\n- Checked: the command and what it printed, then verify()."
	if last != "" {
		prompt += "\n\n" + last
	}
	return step{
		ID: id, Title: "Do the work of " + id, Prompt: prompt,
		FunctionReferences: []string{"verify()"},
		ValidationCriteria: []rule{
			{
				Type: "regex", Flags: "mi",
				Pattern: fmt.Sprintf(`^[^\w\n]*%s\b[^\n]{%d,}`, heading, 10+g.random.IntN(20)),
				Message: "'" + heading + "' is missing. Name each one as path:line.",
			},
			{Type: "regex", Pattern: `\w[./]\w+:\d+`, Message: "No place in the code. Name it as path:line."},
			{Type: "length", Min: 80, Message: "Say more: what was done and how it was checked."},
		},
	}
}
