package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// Format names the form of an index.
const Format = "guideway-registry-1"

// Index is what a registry of Guideway has.
type Index struct {
	Format string `json:"format"`
	// Revision changes with every change of a document.
	Revision  string     `json:"revision"`
	Documents []Document `json:"documents"`
}

// Document is one document of an index.
type Document struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// The tags of copies begin with what they were made of.
const (
	tagIndex = "index:"
	tagList  = "list:"
)

var (
	sumPattern      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })
	idPattern       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) })
	revisionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+-]{0,99}$`) })
)

// Fetch implements mirror.Fetcher.
func (c *Client) Fetch(ctx context.Context, have *mirror.Have, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	defer c.http.CloseIdleConnections()
	tag := ""
	if have != nil {
		tag = have.Tag
	}
	if !strings.HasPrefix(tag, tagList) {
		got, known, err := c.fetchIndex(ctx, have, strings.TrimPrefix(tag, tagIndex), stage)
		if known || err != nil {
			return got, err
		}
	}
	return c.fetchList(ctx, have, strings.TrimPrefix(tag, tagList), stage)
}

// unchanged is what is there already.
func unchanged(have *mirror.Have) mirror.Fetched {
	return mirror.Fetched{Revision: have.Revision, Tag: have.Tag}
}

// fetchIndex brings what an index names; known is false where there is none.
func (c *Client) fetchIndex(ctx context.Context, have *mirror.Have, tag string, stage func() (*mirror.Stage, error)) (got mirror.Fetched, known bool, err error) {
	a, err := c.get(ctx, "index", tag, c.opts.Limits.Bytes)
	switch {
	case err != nil:
		return got, false, err
	case a.status == http.StatusNotModified && have != nil && tag != "":
		return unchanged(have), true, nil
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return got, false, nil
	case a.status != http.StatusOK:
		return got, true, c.refused(a)
	}
	var index Index
	if err := json.Unmarshal(a.body, &index); err != nil || index.Format != Format {
		return got, false, nil // another system may answer everything in its own way
	}
	if !revisionPattern().MatchString(index.Revision) {
		return got, true, c.broken("its index has no revision")
	}
	if len(index.Documents) > c.opts.Limits.Files {
		return got, true, c.tooMany(len(index.Documents))
	}
	got = mirror.Fetched{Revision: index.Revision, Tag: tagIndex + a.etag}
	if have != nil && have.Revision == index.Revision {
		return got, true, nil
	}
	to, err := stage()
	if err != nil {
		return got, true, err
	}
	for _, d := range index.Documents {
		if err := c.document(ctx, have, d, to); err != nil {
			return got, true, err
		}
	}
	return got, true, nil
}

// document brings one document of an index, unless it is there.
func (c *Client) document(ctx context.Context, have *mirror.Have, d Document, to *mirror.Stage) error {
	switch {
	case !sumPattern().MatchString(d.SHA256):
		to.Refuse(d.Name, "registry-sum", "the registry gives no SHA-256 of the document", "mend the registry")
		return nil
	case !mirror.IsSafe(d.Name) || !catalog.IsDefinitionFile(d.Name):
		to.Refuse(d.Name, "file-name", "the name is not that of a document", "mend the registry")
		return nil
	case d.Size > c.opts.Limits.FileBytes:
		to.Refuse(d.Name, "file-too-large", fmt.Sprintf("the document has %d bytes; the limit is %d", d.Size, c.opts.Limits.FileBytes), "split it")
		return nil
	}
	if kept, err := to.Keep(have, d.Name, d.SHA256); kept || err != nil {
		return err
	}
	a, err := c.get(ctx, "documents/"+d.SHA256, "", c.opts.Limits.FileBytes)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return c.refused(a)
	}
	if sumOf(a.body) != d.SHA256 {
		return c.broken(fmt.Sprintf("the document %q is not what its SHA-256 says", d.Name))
	}
	return to.Add(d.Name, c.opts.Limits.FileBytes, bytes.NewReader(a.body))
}

func (c *Client) broken(what string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the registry %s does not answer as one: %s", c.base, what)
}

func (c *Client) tooMany(count int) error {
	return guideway.Errorf(guideway.CodeTooLarge, "the registry %s has %d documents; the limit is %d", c.base, count, c.opts.Limits.Files).
		WithFix("allow more with maxFiles")
}

// fetchList brings the workflows of a registry of another system.
func (c *Client) fetchList(ctx context.Context, have *mirror.Have, tag string, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	var got mirror.Fetched
	a, err := c.get(ctx, "workflows", tag, c.opts.Limits.Bytes)
	switch {
	case err != nil:
		return got, err
	case a.status == http.StatusNotModified && have != nil && tag != "":
		return unchanged(have), nil
	case a.status != http.StatusOK:
		return got, c.refused(a)
	}
	items, err := itemsOf(a.body)
	if err != nil {
		return got, c.broken(err.Error())
	}
	if len(items) > c.opts.Limits.Files {
		return got, c.tooMany(len(items))
	}
	to, err := stage()
	if err != nil {
		return got, err
	}
	sums := []byte{}
	for i, item := range items {
		text, err := c.item(ctx, i, item, to)
		if err != nil {
			return got, err
		}
		sums = append(sums, sumOf(text)...)
	}
	return mirror.Fetched{Revision: "sha256:" + sumOf(sums)[:16], Tag: tagList + a.etag}, nil
}

// itemsOf takes the workflows out of a list.
func itemsOf(body []byte) ([]json.RawMessage, error) {
	var plain []json.RawMessage
	if json.Unmarshal(body, &plain) == nil {
		return plain, nil
	}
	var list struct{ Workflows, Data *[]json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("its list of workflows is no JSON")
	}
	switch {
	case list.Workflows != nil:
		return *list.Workflows, nil
	case list.Data != nil:
		return *list.Data, nil
	}
	return nil, fmt.Errorf("its list has neither workflows nor data")
}

// item brings one workflow of a list: as it stands there or, where that is a summary,
// by its id. What is wrong with one is a finding, and takes no other along.
func (c *Client) item(ctx context.Context, i int, item json.RawMessage, to *mirror.Stage) ([]byte, error) {
	var head struct {
		ID     string          `json:"id"`
		Steps  json.RawMessage `json:"steps"`
		Phases json.RawMessage `json:"phases"`
	}
	refuse := func(name, message string) ([]byte, error) {
		to.Refuse(name, "registry-item", message, "mend it in the registry")
		return nil, nil
	}
	if json.Unmarshal(item, &head) != nil || !idPattern().MatchString(head.ID) {
		return refuse(fmt.Sprintf("workflows[%d]", i), "it is no workflow with an id")
	}
	name := head.ID + ".json"
	if head.Steps == nil && head.Phases == nil {
		a, err := c.get(ctx, "workflows/"+url.PathEscape(head.ID), "", c.opts.Limits.FileBytes)
		if err != nil {
			return nil, err
		}
		if a.status == http.StatusNotFound {
			return refuse(name, "the registry lists it and does not have it")
		}
		if a.status != http.StatusOK {
			return nil, c.refused(a)
		}
		var whole struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(a.body, &whole) != nil {
			return refuse(name, "what the registry gives is no JSON")
		}
		if whole.ID != head.ID {
			return refuse(name, "the registry gives a workflow with another id")
		}
		item = a.body
	}
	return item, to.Add(name, c.opts.Limits.FileBytes, bytes.NewReader(item))
}
