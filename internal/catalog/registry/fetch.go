package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// Format is the format of an index.
const Format = "guideway-registry-1"

// Index lists the documents of a Guideway registry.
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

// The prefixes of tags mark how a copy was fetched.
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
func (c *Client) Fetch(ctx context.Context, have *mirror.Previous, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
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

// unchangedResult is the result if the copy is current.
func unchangedResult(have *mirror.Previous) mirror.Fetched {
	return mirror.Fetched{Revision: have.Revision, Tag: have.Tag}
}

// fetchIndex fetches the documents of an index; known is false if there is no index.
func (c *Client) fetchIndex(ctx context.Context, have *mirror.Previous, tag string, stage func() (*mirror.Stage, error)) (got mirror.Fetched, known bool, err error) {
	a, err := c.getWithRetry(ctx, "index", tag, c.opts.Limits.Bytes)
	switch {
	case err != nil:
		return got, false, err
	case a.status == http.StatusNotModified && have != nil && tag != "":
		return unchangedResult(have), true, nil
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return got, false, nil
	case a.status != http.StatusOK:
		return got, true, c.statusFix(a)
	}
	var index Index
	if err := json.Unmarshal(a.body, &index); err != nil || index.Format != Format {
		return got, false, nil // another system may answer every path
	}
	if !revisionPattern().MatchString(index.Revision) {
		return got, true, c.invalidAnswer("the index has no valid revision")
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
		if err := c.fetchDocument(ctx, have, d, to); err != nil {
			return got, true, err
		}
	}
	return got, true, nil
}

// fetchDocument fetches one document of an index, unless the copy has it.
func (c *Client) fetchDocument(ctx context.Context, have *mirror.Previous, d Document, to *mirror.Stage) error {
	switch {
	case !sumPattern().MatchString(d.SHA256):
		to.Reject(d.Name, "registry-sum", "the registry sent no valid SHA-256 of the document", "ask the operator of the registry to correct the entry")
		return nil
	case !mirror.IsSafe(d.Name) || !catalog.IsDefinitionFile(d.Name):
		to.Reject(d.Name, "file-name", "the name is not a valid document name", "ask the operator of the registry to correct the entry")
		return nil
	case d.Size > c.opts.Limits.FileBytes:
		to.Reject(d.Name, "file-too-large", fmt.Sprintf("the document has %d bytes; the limit is %d", d.Size, c.opts.Limits.FileBytes), "split the document, or raise maxFileSize of the source (at most 1 MiB)")
		return nil
	}
	if kept, err := to.Reuse(have, d.Name, d.SHA256); kept || err != nil {
		return err
	}
	a, err := c.getWithRetry(ctx, "documents/"+d.SHA256, "", c.opts.Limits.FileBytes)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return c.statusFix(a)
	}
	if digest.Hex(a.body) != d.SHA256 {
		return c.invalidAnswer(fmt.Sprintf("the document %q does not match its SHA-256", d.Name))
	}
	return to.Add(d.Name, c.opts.Limits.FileBytes, bytes.NewReader(a.body))
}

func (c *Client) invalidAnswer(what string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the response of the registry %s is not valid: %s", c.base, what).
		WithFix("check the address of the registry, or ask its operator to correct the response")
}

func (c *Client) tooMany(count int) error {
	return guideway.Errorf(guideway.CodeTooLarge, "the registry %s has %d documents; the limit is %d", c.base, count, c.opts.Limits.Files).
		WithFix("raise maxFiles of the source")
}

// fetchList fetches the workflows of another system's registry.
func (c *Client) fetchList(ctx context.Context, have *mirror.Previous, tag string, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	var got mirror.Fetched
	a, err := c.getWithRetry(ctx, "workflows", tag, c.opts.Limits.Bytes)
	switch {
	case err != nil:
		return got, err
	case a.status == http.StatusNotModified && have != nil && tag != "":
		return unchangedResult(have), nil
	case a.status != http.StatusOK:
		return got, c.statusFix(a)
	}
	items, err := itemsOf(a.body)
	if err != nil {
		return got, c.invalidAnswer(err.Error())
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
		text, err := c.fetchItem(ctx, i, item, to)
		if err != nil {
			return got, err
		}
		sums = append(sums, digest.Hex(text)...)
	}
	return mirror.Fetched{Revision: "sha256:" + digest.Hex(sums)[:16], Tag: tagList + a.etag}, nil
}

// itemsOf returns the workflows of a list.
func itemsOf(body []byte) ([]json.RawMessage, error) {
	var plain []json.RawMessage
	if json.Unmarshal(body, &plain) == nil {
		return plain, nil
	}
	var list struct{ Workflows, Data *[]json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the list of workflows is not a JSON array or object")
	}
	switch {
	case list.Workflows != nil:
		return *list.Workflows, nil
	case list.Data != nil:
		return *list.Data, nil
	}
	return nil, errors.New(`the list of workflows has neither the member "workflows" nor the member "data"`)
}

// fetchItem returns one workflow of a list: from the list itself or, for a summary, by its
// id. A workflow that is missing or not valid is a diagnostic; another error fails the
// fetch.
func (c *Client) fetchItem(ctx context.Context, i int, item json.RawMessage, to *mirror.Stage) ([]byte, error) {
	var head struct {
		ID     string          `json:"id"`
		Steps  json.RawMessage `json:"steps"`
		Phases json.RawMessage `json:"phases"`
	}
	refuse := func(name, message string) ([]byte, error) {
		to.Reject(name, "registry-item", message, "ask the operator of the registry to correct the workflow")
		return nil, nil
	}
	if json.Unmarshal(item, &head) != nil || !idPattern().MatchString(head.ID) {
		return refuse(fmt.Sprintf("workflows[%d]", i), fmt.Sprintf("the entry is not a workflow with a valid id; its id is %.80q", head.ID))
	}
	name := head.ID + ".json"
	if head.Steps == nil && head.Phases == nil {
		a, err := c.getWithRetry(ctx, "workflows/"+url.PathEscape(head.ID), "", c.opts.Limits.FileBytes)
		if err != nil {
			return nil, err
		}
		if a.status == http.StatusNotFound {
			return refuse(name, "the registry lists the workflow but does not have it")
		}
		if a.status != http.StatusOK {
			return nil, c.statusFix(a)
		}
		var whole struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(a.body, &whole) != nil {
			return refuse(name, "the response of the registry is not a JSON object with an id")
		}
		if whole.ID != head.ID {
			return refuse(name, fmt.Sprintf("the registry sent the workflow %.80q instead of %q", whole.ID, head.ID))
		}
		item = a.body
	}
	return item, to.Add(name, c.opts.Limits.FileBytes, bytes.NewReader(item))
}
