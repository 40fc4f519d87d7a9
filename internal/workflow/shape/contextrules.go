package shape

import (
	"fmt"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// The limits of contextRules.
const (
	maxContextRules  = 100
	maxContextKeys   = 100
	maxContextKeyLen = 200
)

// ContextRules reads the contextRules of a guided workflow. Invalid rules are reported and
// omitted.
func (r *Report) ContextRules(at Place) compress.Rules {
	if !r.Array(at, "a list of rules") {
		return nil
	}
	r.checkMaxItems(at, maxContextRules, "rules", "merge rules of the same layer, or use * in their keys")
	rules := make(compress.Rules, 0, len(at.Node.Items))
	for i := range at.Node.Items {
		before := len(r.Found)
		inner, ok := r.Element(at.Index(i), "keys", "layer", "why")
		if !ok && inner.Node.Kind != doc.Object {
			continue
		}
		r.Require(inner, "keys", "layer")
		rule := compress.Rule{
			Keys:  r.contextKeys(inner.Key("keys")),
			Layer: compress.Layer(r.Choice(inner.Key("layer"), CodeEnum, layerNames()...)),
			Why:   r.Text(inner.Key("why"), 0, 0),
		}
		if len(r.Found) == before {
			rules = append(rules, rule)
		}
	}
	return rules
}

func (r *Report) contextKeys(at Place) []string {
	if at.Node == nil || at.Node.Kind != doc.Array {
		return r.Texts(at, 0, 0)
	}
	if len(at.Node.Items) == 0 {
		r.Errorf(at, CodeEmptyList, "list the variables that the rule applies to; * matches any characters", "Field '%s' %s is empty: a rule needs at least one key.", at.Name, at.Where)
	}
	r.checkMaxItems(at, maxContextKeys, "keys", "use * in a key, or split the rule in two")
	return r.Texts(at, 1, maxContextKeyLen)
}

// checkMaxItems reports a list that is too long.
func (r *Report) checkMaxItems(at Place, most int, noun, fix string) {
	if n := len(at.Node.Items); n > most {
		r.Errorf(at, CodeRange, fix, "Field '%s' %s has %d %s; at most %d are allowed.", at.Name, at.Where, n, noun, most)
	}
}

func layerNames() []string {
	layers := compress.Layers()
	return lists.Map(layers, func(layer compress.Layer) string { return fmt.Sprint(layer) })
}
