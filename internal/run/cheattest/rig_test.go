package cheattest

import (
	"encoding/json"
	"testing"

	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/guide"
)

// rig is the product, or its engine alone, with one run in it.
type rig interface {
	// start begins the run.
	start(vars map[string]any) (seen, *denial)
	// send hands a command in, with the current handle.
	send(c command) (seen, *denial)
	// look says where the run is, and changes nothing.
	look() seen
	// state is all of the run that a refusal must leave alone.
	state() string
}

// seen is what an answer shows.
type seen struct {
	status   string
	position guide.Position
	// whole is the JSON of all of it.
	whole string
}

// denial is a refusal.
type denial struct {
	rule, message string
	whole         string
}

// engine is guide alone: the rules without handles, stores and users.
type engine struct {
	t       testing.TB
	program *guide.Program
	run     guide.State
}

func newEngine(t testing.TB, d *definition_) *engine { return nil }

func compile(t testing.TB, d *definitionDoc) *guide.Program { return nil }

func parse(t fataler, document []byte) *guide.Program {
	def, found := definition.Parse("random.json", document)
	if def == nil {
		t.Fatalf("the definition does not parse: %+v\n%s", found, document)
	}
	return guide.Compile(def.Steps)
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
