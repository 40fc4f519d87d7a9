package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// reading is the part of the answer to a call that a model reads.
type reading struct {
	// text is all that the client shows the model.
	text string
	// kind and id identify the position.
	kind, id string
	// rule is the rule that a refusal names, or "".
	rule string
	next *nextForm
}

// nextForm is the next call that an answer suggests.
type nextForm struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Fields    []formField    `json:"fields"`
}

type formField struct {
	Name     string `json:"name"`
	Choices  []any  `json:"choices"`
	Optional bool   `json:"optional"`
}

// move returns the position, or the rule of a refusal.
func (r reading) move() string {
	if r.rule != "" {
		return r.rule
	}
	return strings.TrimSpace(r.kind + " " + r.id)
}

func (r reading) at() string {
	if r.rule != "" {
		return r.rule
	}
	return r.id
}

// read returns the parts of a result that the client shows its model, by the settings
// answers and refusals of the profile.
func (p *clientProfile) read(result json.RawMessage) (reading, error) {
	var r struct {
		Content           []struct{ Type, Text string } `json:"content"`
		StructuredContent json.RawMessage               `json:"structuredContent"`
		IsError           bool                          `json:"isError"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return reading{}, err
	}
	if len(r.Content) != 1 || r.Content[0].Type != "text" {
		return reading{}, fmt.Errorf("%d blocks of content; clients lose or join further ones", len(r.Content))
	}
	if r.StructuredContent != nil {
		return reading{}, fmt.Errorf("the answer is sent twice: %s", r.StructuredContent)
	}
	mode, text := p.settings["answers"], r.Content[0].Text
	if r.IsError {
		mode = p.settings["refusals"]
	}
	seen := reading{text: text}
	switch mode {
	case "result":
		seen.text = string(result)
	case "blocks":
		blocks, err := json.Marshal(r.Content)
		if err != nil {
			return reading{}, err
		}
		seen.text = string(blocks)
	case "text", "structure", "both": // the text, if there is no structure
	default:
		return reading{}, fmt.Errorf("unknown mode %q", mode)
	}
	return seen, seen.parse(text)
}

var (
	positionLine = regexp.MustCompile(`(?m)^(step|gate|context|end)(?: (\S+))?: `)
	nextLine     = regexp.MustCompile(`(?m)^Next: (\S+) (\{.*\})$`)
	fieldLine    = regexp.MustCompile(`^- ([a-zA-Z.]+)(?: \(\w+\))?: (.*)$`)
	refusalLine  = regexp.MustCompile(`^\w+ \(([a-z-]+)\): `)
	choiceList   = regexp.MustCompile(`; one of (.*)$`)
)

// parse reads the position and the next call, from JSON or from text.
func (r *reading) parse(text string) error {
	if strings.HasPrefix(text, "{") {
		var a struct {
			Rule     string                    `json:"rule"`
			Position struct{ Kind, ID string } `json:"position"`
			Next     *nextForm                 `json:"next"`
		}
		err := json.NewDecoder(strings.NewReader(text)).Decode(&a) // the instructions may follow
		r.kind, r.id, r.rule, r.next = a.Position.Kind, a.Position.ID, a.Rule, a.Next
		return err
	}
	if found := refusalLine.FindStringSubmatch(text); found != nil {
		r.rule = found[1]
	}
	if found := positionLine.FindStringSubmatch(text); found != nil {
		r.kind, r.id = found[1], found[2]
	}
	at := nextLine.FindStringSubmatchIndex(text)
	if at == nil {
		return nil
	}
	r.next = &nextForm{Tool: text[at[2]:at[3]]}
	if err := json.Unmarshal([]byte(text[at[4]:at[5]]), &r.next.Arguments); err != nil {
		return err
	}
	for line := range strings.Lines(text[at[1]:]) {
		line = strings.TrimSpace(line)
		found := fieldLine.FindStringSubmatch(line)
		if found == nil && line != "" && line != "with" {
			break // the fields end here
		}
		if found == nil {
			continue
		}
		field := formField{Name: found[1], Optional: strings.HasSuffix(found[2], "(optional)")}
		if list := choiceList.FindStringSubmatch(found[2]); list != nil {
			if err := json.Unmarshal([]byte("["+list[1]+"]"), &field.Choices); err != nil {
				return err
			}
		}
		r.next.Fields = append(r.next.Fields, field)
	}
	return nil
}
