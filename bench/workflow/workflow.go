package workflow

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// document is a step workflow in JSON or YAML form.
type document struct {
	ID                   string     `json:"id" yaml:"id"`
	Name                 string     `json:"name" yaml:"name"`
	Description          string     `json:"description" yaml:"description"`
	Version              string     `json:"version" yaml:"version"`
	Preconditions        []string   `json:"preconditions" yaml:"preconditions"`
	ClarificationPrompts []string   `json:"clarificationPrompts" yaml:"clarificationPrompts"`
	MetaGuidance         []string   `json:"metaGuidance" yaml:"metaGuidance"`
	FunctionDefinitions  []function `json:"functionDefinitions,omitempty" yaml:"functionDefinitions,omitempty"`
	Steps                []step     `json:"steps" yaml:"steps"`
}

type function struct {
	Name       string `json:"name" yaml:"name"`
	Definition string `json:"definition" yaml:"definition"`
}

type step struct {
	ID                  string    `json:"id" yaml:"id"`
	Type                string    `json:"type,omitempty" yaml:"type,omitempty"`
	Title               string    `json:"title" yaml:"title"`
	RunCondition        condition `json:"runCondition,omitempty" yaml:"runCondition,omitempty"`
	AgentRole           string    `json:"agentRole,omitempty" yaml:"agentRole,omitempty"`
	Guidance            []string  `json:"guidance,omitempty" yaml:"guidance,omitempty"`
	Prompt              string    `json:"prompt,omitempty" yaml:"prompt,omitempty"`
	FunctionReferences  []string  `json:"functionReferences,omitempty" yaml:"functionReferences,omitempty"`
	ValidationCriteria  []rule    `json:"validationCriteria,omitempty" yaml:"validationCriteria,omitempty"`
	RequireConfirmation bool      `json:"requireConfirmation,omitempty" yaml:"requireConfirmation,omitempty"`
	Loop                *loop     `json:"loop,omitempty" yaml:"loop,omitempty"`
	Body                []step    `json:"body,omitempty" yaml:"body,omitempty"`
}

type condition map[string]any

type rule struct {
	Type    string `json:"type" yaml:"type"`
	Pattern string `json:"pattern,omitempty" yaml:"pattern,omitempty"`
	Flags   string `json:"flags,omitempty" yaml:"flags,omitempty"`
	Value   string `json:"value,omitempty" yaml:"value,omitempty"`
	Min     int    `json:"min,omitempty" yaml:"min,omitempty"`
	Message string `json:"message" yaml:"message"`
}

type loop struct {
	Type          string    `json:"type" yaml:"type"`
	Condition     condition `json:"condition,omitempty" yaml:"condition,omitempty"`
	Items         string    `json:"items,omitempty" yaml:"items,omitempty"`
	Count         any       `json:"count,omitempty" yaml:"count,omitempty"`
	MaxIterations int       `json:"maxIterations" yaml:"maxIterations"`
	IterationVar  string    `json:"iterationVar,omitempty" yaml:"iterationVar,omitempty"`
	ItemVar       string    `json:"itemVar,omitempty" yaml:"itemVar,omitempty"`
	IndexVar      string    `json:"indexVar,omitempty" yaml:"indexVar,omitempty"`
}

// workflowCount is the number of workflows in the measured catalog.
const workflowCount = 50

// generateWorkflows returns the documents: two to walk, and others of about 10 to 60 kB
// with conditions, a confirmation and all kinds of loops.
func generateWorkflows() []document {
	docs := []document{loopDocument("bench-loop", loopRounds), loopDocument("bench-long", longRounds)}
	for i := len(docs); i < workflowCount; i++ {
		docs = append(docs, mixedDocument(i))
	}
	return docs
}

// writeWorkflows writes each document into two directories, as JSON and as YAML.
func writeWorkflows(jsonDir, yamlDir string) error {
	for _, d := range generateWorkflows() {
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return fmt.Errorf("write %s: %w", d.ID, err)
		}
		if err := os.WriteFile(filepath.Join(jsonDir, d.ID+".json"), text, 0o600); err != nil {
			return fmt.Errorf("write a workflow: %w", err)
		}
		if text, err = yaml.Marshal(d); err != nil {
			return fmt.Errorf("write %s: %w", d.ID, err)
		}
		if err := os.WriteFile(filepath.Join(yamlDir, d.ID+".yaml"), text, 0o600); err != nil {
			return fmt.Errorf("write a workflow: %w", err)
		}
	}
	return nil
}
