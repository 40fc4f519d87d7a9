package install

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// appendLines returns one text for each offset, with the lines inserted there. An offset is
// the start of a line or the end of the text.
func (d *yamlDoc) appendLines(lines []string, offsets ...int) [][]byte {
	nl := newlineOf(d.src)
	text := strings.Join(lines, nl) + nl
	var texts [][]byte
	for _, at := range offsets {
		lead := ""
		if before := bytes.TrimPrefix(d.src[:at], bom); len(before) > 0 && before[len(before)-1] != '\n' {
			lead = nl
		}
		texts = append(texts, applyEdits(d.src, edit{at, at, lead + text}))
	}
	return texts
}

// addToFlow returns the text with a child at the end of a collection in brackets.
func (d *yamlDoc) addToFlow(n *yaml.Node, text string) [][]byte {
	at := d.offsetOf(n)
	if d.endOf(n) < 0 {
		return nil
	}
	if at++; len(n.Content) > 0 {
		at, text = d.offsetOf(n)+1, ", "+text
		for _, child := range n.Content {
			at = max(at, d.endOf(child))
		}
	}
	return [][]byte{applyEdits(d.src, edit{at, at, text})}
}

// removeFromFlow returns the text without an item of a list in brackets.
func (d *yamlDoc) removeFromFlow(list, item *yaml.Node) [][]byte {
	i := slices.Index(list.Content, item)
	start, end := d.offsetOf(item), d.endOf(item)
	if i < 0 || start < 0 || end < 0 {
		return nil
	}
	if i > 0 {
		start = d.endOf(list.Content[i-1])
	} else if len(list.Content) > 1 {
		end = d.offsetOf(list.Content[1])
	}
	if start < 0 || end < start {
		return nil
	}
	return [][]byte{applyEdits(d.src, edit{start, end, ""})}
}

// removeMember returns the texts without a member of a mapping.
func (d *yamlDoc) removeMember(n, key, value *yaml.Node) [][]byte {
	if !isFlow(n) {
		var texts [][]byte
		for _, end := range d.blockEnds(value) {
			texts = append(texts, applyEdits(d.src, edit{d.lines[key.Line-1], end, ""}))
		}
		return texts
	}
	i := slices.Index(n.Content, key)
	start, end := d.offsetOf(key), d.endOf(value)
	if i > 0 {
		start = d.endOf(n.Content[i-1])
	}
	if start < 0 || end < start {
		return nil
	}
	return [][]byte{applyEdits(d.src, edit{start, end, ""})}
}

// dashLine returns the line with the dash of an item, which can be before the item.
func (d *yamlDoc) dashLine(list, item *yaml.Node) int {
	line := item.Line
	for line > list.Line {
		text := d.line(line)
		if len(text) >= list.Column && text[list.Column-1] == '-' && len(bytes.Trim(text[:list.Column-1], " ")) == 0 {
			break
		}
		line--
	}
	return line
}

// yamlChange is a value to set at a path of keys.
type yamlChange struct {
	path []string
	val  any
}

// updateItem changes only the members of an entry that differ. It replaces an entry with
// another kind of connection.
func (y yamlFormat) updateItem(d *yamlDoc, item *yaml.Node, name string, e Entry) ([]byte, error) {
	old, _, err := y.lookupEntry(d.src, name)
	if err != nil {
		return nil, err
	}
	kinds := []string{"", "stdio"}
	if e.URL != "" {
		kinds = []string{"", "streamable-http"}
	}
	if !slices.Contains(kinds, textAt(item, "type")) || (old.URL == "") != (e.URL == "") || old.Target() == "" ||
		old.Authorization != "" && e.Authorization == "" {
		return y.replaceItem(d, item, name, e)
	}
	for _, w := range changedValues(old, e) {
		text, err := y.firstChecked(d, name, d.setValue(item, w.path, w.val))
		if err != nil {
			return nil, err
		}
		if d, err = readYAML(text); err != nil {
			return nil, err
		}
		if item, err = y.findItem(d, name); err != nil || item == nil {
			return nil, errYAMLForm
		}
	}
	return d.src, nil
}

// changedValues returns the values of an entry that differ from those of an earlier one.
func changedValues(old, e Entry) []yamlChange {
	var list []yamlChange
	add := func(differs bool, val any, path ...string) {
		if differs {
			list = append(list, yamlChange{path, val})
		}
	}
	add(old.Command != e.Command, e.Command, "command")
	add(!slices.Equal(old.Args, e.Args), e.Args, "args")
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		have, ok := old.Env[k]
		add(!ok || have != e.Env[k], e.Env[k], "env", k)
	}
	add(old.URL != e.URL, e.URL, "url")
	add(old.Authorization != e.Authorization, e.Authorization, "requestOptions", "headers", authorizationHeader)
	return list
}

// replaceItem replaces a whole entry at its place.
func (y yamlFormat) replaceItem(d *yamlDoc, item *yaml.Node, name string, e Entry) ([]byte, error) {
	at := y.itemText(d, name)
	if at.text == "" {
		return nil, errYAMLForm
	}
	text := flowEntry(name, e)
	if !isFlow(item) {
		nl := newlineOf(d.src)
		lines := blockLines(yamlFields(name, e), strings.Repeat(" ", item.Column-1))
		text = strings.TrimLeft(strings.Join(lines, nl), " ") + nl
	}
	return y.firstChecked(d, name, [][]byte{applyEdits(d.src, edit{at.start, at.end, text})})
}

// setValue returns the texts with a value at a path of keys below a mapping. It adds missing
// mappings.
func (d *yamlDoc) setValue(n *yaml.Node, path []string, val any) [][]byte {
	for i, key := range path {
		name, value := lookupNode(n, key)
		switch {
		case name == nil:
			return d.addMember(n, nestValue(path[i:], val)[0])
		case i == len(path)-1:
			return d.replaceValue(name, value, val)
		case isNull(value) && value.Value == "":
			return d.replaceValue(name, value, nestValue(path[i+1:], val))
		case value.Kind != yaml.MappingNode:
			return nil
		}
		n = value
	}
	return nil
}

// addMember returns the texts with a member at the end of a mapping.
func (d *yamlDoc) addMember(n *yaml.Node, f field) [][]byte {
	if isFlow(n) {
		return d.addToFlow(n, quoteYAML(f.key)+": "+flowValue(f.val))
	}
	return d.appendLines(blockLines([]field{f}, strings.Repeat(" ", n.Column-1)), d.blockEnds(n)...)
}

// replaceValue returns the texts with another value of a key, written on the line of the key.
func (d *yamlDoc) replaceValue(key, value *yaml.Node, val any) [][]byte {
	if value.Kind == yaml.ScalarNode && value.Value != "" || isFlow(value) || value.Kind == yaml.AliasNode {
		if start, end := d.offsetOf(value), d.endOf(value); start >= 0 && end >= start {
			return [][]byte{applyEdits(d.src, edit{start, end, flowValue(val)})}
		}
		return nil
	}
	at := d.endOf(key)
	if at < 0 || at >= len(d.src) || d.src[at] != ':' {
		return nil
	}
	at++
	insert := edit{at, at, " " + flowValue(val)}
	if len(value.Content) == 0 {
		return [][]byte{applyEdits(d.src, insert)}
	}
	var texts [][]byte
	for _, end := range d.blockEnds(value) {
		if start := d.lines[value.Line-1]; start >= at {
			texts = append(texts, applyEdits(d.src, insert, edit{start, end, ""}))
		}
	}
	return texts
}
