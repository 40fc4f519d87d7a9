package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// The bounds of what a repository unpacks to.
const (
	maxObjects     = 500_000
	maxObjectBytes = 64 << 20
	maxUnpacked    = 1 << 30
)

// session is one conversation with the host of a repository.
type session interface {
	// refs asks what there is.
	refs(ctx context.Context) (*packp.AdvRefs, error)
	// pack asks for objects. What is read is bounded.
	pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error)
	Close() error
}

// connect begins a conversation.
func (f *Fetcher) connect(ctx context.Context) (session, error) {
	if f.address.scheme == schemeSSH {
		return f.connectSSH(ctx)
	}
	return f.connectHTTP()
}

// fetchRemote asks a host what there is, and for the commit if it is another.
func (f *Fetcher) fetchRemote(ctx context.Context, have *mirror.Have, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	s, err := f.connect(ctx)
	if err != nil {
		return mirror.Fetched{}, err
	}
	defer s.Close()
	adv, err := s.refs(ctx)
	if err != nil {
		return mirror.Fetched{}, err
	}
	t, err := f.choose(remoteRefs{adv})
	if err != nil {
		return mirror.Fetched{}, err
	}
	got, known := seen(have, t)
	if known {
		return got, nil
	}
	to, err := stage()
	if err != nil {
		return got, err
	}
	scratch, err := to.Scratch()
	if err != nil {
		return got, err
	}
	req, err := f.request(adv, t)
	if err != nil {
		return got, err
	}
	storage, err := f.download(ctx, s, req, scratch)
	if err != nil {
		return got, err
	}
	defer storage.Close()
	return got, f.export(ctx, storage, t, req.Filter != "", to)
}

// request asks for one commit without its history and, where the other side can
// do that, without the files that are too large to be documents.
func (f *Fetcher) request(adv *packp.AdvRefs, t target) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	req.Wants = []plumbing.Hash{t.hash}
	if !t.advertised && !isAdvertised(adv, t.hash) &&
		!adv.Capabilities.Supports(capability.AllowReachableSHA1InWant) && !adv.Capabilities.Supports("allow-any-sha1-in-want") {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the host gives commits that a branch or tag names, and none names %s", t.hash).
			WithFix("follow a branch or a tag")
	}
	// Thin packs refer to objects that are not in them, and there are none here.
	req.Capabilities.Delete(capability.ThinPack)
	if adv.Capabilities.Supports(capability.Shallow) {
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return nil, err
		}
		req.Depth = packp.DepthCommits(1)
	}
	if adv.Capabilities.Supports(capability.Filter) {
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return nil, err
		}
		req.Filter = packp.FilterBlobLimit(uint64(f.opts.Limits.FileBytes)+1, packp.BlobLimitPrefixNone)
	}
	return req, nil
}

func isAdvertised(adv *packp.AdvRefs, hash plumbing.Hash) bool {
	for _, known := range adv.References {
		if known == hash {
			return true
		}
	}
	return false
}

// download brings the objects into a directory of their own.
func (f *Fetcher) download(ctx context.Context, s session, req *packp.UploadPackRequest, dir string) (*filesystem.Storage, error) {
	body, err := s.pack(ctx, req)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	file, err := os.OpenFile(filepath.Join(dir, "fetched.pack"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	written, err := io.Copy(file, io.LimitReader(packOf(req, body), f.opts.Limits.Bytes+1))
	if err == nil && written > f.opts.Limits.Bytes || errors.Is(err, errTooLarge) {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "the repository is too large: its newest commit has more than %d bytes", f.opts.Limits.Bytes).
			WithFix("keep the workflows in a repository of their own, or allow more with maxBytes")
	}
	if err != nil {
		return nil, fmt.Errorf("receive the commit: %w", err)
	}
	if err := checkPack(ctx, file); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	storage := filesystem.NewStorageWithOptions(osfs.New(filepath.Join(dir, "objects.git"), osfs.WithBoundOS()),
		cache.NewObjectLRU(cacheBytes), filesystem.Options{LargeObjectThreshold: 1 << 20})
	if err := packfile.UpdateObjectStorage(storage, file); err != nil {
		return nil, errors.Join(fmt.Errorf("unpack the commit: %w", err), storage.Close())
	}
	return storage, nil
}

// packOf takes the objects out of what a host sends.
func packOf(req *packp.UploadPackRequest, body io.Reader) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, body)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, body)
	default:
		return body
	}
}

// checkPack looks at the sizes of all objects before any is taken into memory: few
// bytes can unpack to very many.
func checkPack(ctx context.Context, file io.ReadSeeker) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	tooMuch := func(what string) error {
		return guideway.Errorf(guideway.CodeTooLarge, "the repository is too large: %s", what).
			WithFix("keep the workflows in a repository of their own")
	}
	scanner := packfile.NewScanner(file)
	_, count, err := scanner.Header()
	if err != nil {
		return fmt.Errorf("read what was received: %w", err)
	}
	if count > maxObjects {
		return tooMuch(fmt.Sprintf("it has %d objects", count))
	}
	total := int64(0)
	for range count {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return fmt.Errorf("read what was received: %w", err)
		}
		if header.Length > maxObjectBytes {
			return tooMuch(fmt.Sprintf("one of its files has %d bytes", header.Length))
		}
		size := header.Length
		start := &beginning{}
		if _, _, err := scanner.NextObject(start); err != nil {
			return fmt.Errorf("read what was received: %w", err)
		}
		if header.Type == plumbing.OFSDeltaObject || header.Type == plumbing.REFDeltaObject {
			size = start.deltaTarget()
		}
		if size > maxObjectBytes || size < 0 {
			return tooMuch(fmt.Sprintf("one of its files has more than %d bytes", maxObjectBytes))
		}
		if total += size; total > maxUnpacked {
			return tooMuch(fmt.Sprintf("its files have more than %d bytes", maxUnpacked))
		}
	}
	return nil
}

// beginning keeps the first bytes that are written to it.
type beginning struct {
	data [24]byte
	n    int
}

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	b.n += copy(b.data[b.n:], p)
	return len(p), nil
}

// deltaTarget is the size of what a delta makes; below zero if it says none.
func (b *beginning) deltaTarget() int64 {
	rest := b.data[:b.n]
	var size int64
	for range 2 { // the size of what it begins from comes first
		var ok bool
		if size, rest, ok = varint(rest); !ok {
			return -1
		}
	}
	return size
}

// varint reads a number of seven bits a byte, the lowest first.
func varint(data []byte) (value int64, rest []byte, ok bool) {
	for i, b := range data {
		if i > 8 {
			return 0, nil, false
		}
		value |= int64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			return value, data[i+1:], true
		}
	}
	return 0, nil, false
}

// remoteRefs are the references that a host names.
type remoteRefs struct{ *packp.AdvRefs }

var _ refs = remoteRefs{}

func (r remoteRefs) find(name string) (plumbing.Hash, bool) {
	if hash, ok := r.Peeled[name]; ok {
		return hash, true
	}
	hash, ok := r.References[name]
	return hash, ok
}

func (r remoteRefs) head() (plumbing.Hash, string, bool) {
	for _, pair := range r.Capabilities.Get(capability.SymRef) {
		if name, ok := strings.CutPrefix(pair, "HEAD:"); ok {
			if hash, ok := r.find(name); ok {
				return hash, strings.TrimPrefix(name, "refs/heads/"), true
			}
		}
	}
	if r.Head != nil {
		return *r.Head, "HEAD", true
	}
	for _, name := range []string{"main", "master"} {
		if hash, ok := r.find("refs/heads/" + name); ok {
			return hash, name, true
		}
	}
	return plumbing.ZeroHash, "", false
}

// errTooLarge says that a host sent more than is read.
var errTooLarge = errors.New("the answer is too large")

// bounded is an answer of which no more than a number of bytes is read.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
