package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/guideway-dev/guideway"
)

// SSH says how hosts of ssh are reached.
type SSH struct {
	// Key is the file of a private key. Without it the keys of the agent are used,
	// and those of Dir.
	Key string
	// Agent is the socket of the agent; "" is none.
	Agent string
	// Dir has the user's keys and known_hosts; usually ~/.ssh.
	Dir string
	// KnownHosts is the file of the keys of hosts; "" is known_hosts in Dir, and that
	// of the system.
	KnownHosts string
}

// systemKnownHosts has the keys of hosts that an administrator put there.
const systemKnownHosts = "/etc/ssh/ssh_known_hosts"

// overSSH is a conversation over ssh.
type overSSH struct {
	conn    net.Conn
	client  *ssh.Client
	agent   io.Closer
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	limit   int64
	stop    func() bool
}

// connectSSH logs in and starts git on the other side. The connection ends with ctx.
func (f *Fetcher) connectSSH(ctx context.Context) (_ session, err error) {
	s := &overSSH{limit: f.opts.Limits.Bytes + f.opts.Limits.Bytes/16 + 1<<20}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	config, err := f.sshConfig(s)
	if err != nil {
		return nil, err
	}
	s.conn, err = (&net.Dialer{Timeout: 15 * time.Second}).DialContext(ctx, "tcp", f.address.dialPort(22))
	if err != nil {
		return nil, err
	}
	s.stop = context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	if deadline, ok := ctx.Deadline(); ok {
		_ = s.conn.SetDeadline(deadline) // the connection is closed then in any case
	}
	conn, channels, requests, err := ssh.NewClientConn(s.conn, f.address.dialPort(22), config)
	if err != nil {
		return nil, explainSSH(err)
	}
	s.client = ssh.NewClient(conn, channels, requests)
	if s.session, err = s.client.NewSession(); err != nil {
		return nil, err
	}
	if s.in, err = s.session.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = s.session.StdoutPipe(); err != nil {
		return nil, err
	}
	s.session.Stderr = io.Discard
	return s, s.session.Start("git-upload-pack " + quote(f.address.path))
}

// quote makes one word of a path for the shell of the other side.
func quote(path string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `!`, `'\!'`).Replace(path) + "'"
}

// sshConfig says who logs in, and which key the host must have.
func (f *Fetcher) sshConfig(s *overSSH) (*ssh.ClientConfig, error) {
	files := f.knownHosts()
	if len(files) == 0 {
		return nil, guideway.Errorf(guideway.CodeForbidden, "no key of the host %s is known", f.address.hostPort()).
			WithFix("log in once with ssh, which keeps the key in known_hosts")
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, fmt.Errorf("read the keys of known hosts: %w", err)
	}
	auth, err := f.sshAuth(s)
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{
		User: f.address.user, Auth: auth, HostKeyCallback: db.HostKeyCallback(), HostKeyAlgorithms: db.HostKeyAlgorithms(f.address.dialPort(22)),
		ClientVersion: "SSH-2.0-Guideway", Timeout: 15 * time.Second,
	}, nil
}

// knownHosts are the files of keys that are there.
func (f *Fetcher) knownHosts() []string {
	candidates := []string{f.opts.SSH.KnownHosts}
	if candidates[0] == "" {
		candidates = []string{systemKnownHosts}
		if f.opts.SSH.Dir != "" {
			candidates = append(candidates, filepath.Join(f.opts.SSH.Dir, "known_hosts"))
		}
	}
	var there []string
	for _, file := range candidates {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			there = append(there, file)
		}
	}
	return there
}

// sshAuth collects the keys to log in with.
func (f *Fetcher) sshAuth(s *overSSH) ([]ssh.AuthMethod, error) {
	if f.opts.SSH.Key != "" {
		signer, err := readKey(f.opts.SSH.Key)
		if err != nil {
			return nil, err
		}
		return []ssh.AuthMethod{ssh.PublicKeys(signer)}, nil
	}
	var methods []ssh.AuthMethod
	if f.opts.SSH.Agent != "" {
		if conn, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("unix", f.opts.SSH.Agent); err == nil {
			s.agent = conn
			methods = append(methods, ssh.PublicKeysCallback(agent.NewClient(conn).Signers))
		}
	}
	var signers []ssh.Signer
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		// A key with a passphrase is one for the agent.
		if signer, err := readKey(filepath.Join(f.opts.SSH.Dir, name)); err == nil && f.opts.SSH.Dir != "" {
			signers = append(signers, signer)
		}
	}
	if len(signers) > 0 {
		methods = append(methods, ssh.PublicKeys(signers...))
	}
	if len(methods) == 0 {
		return nil, guideway.Errorf(guideway.CodeForbidden, "there is no key to log in to %s with", f.address.hostPort()).
			WithFix("start ssh-agent and add a key, or name one as sshKey")
	}
	return methods, nil
}

// readKey reads a private key without a passphrase.
func readKey(file string) (ssh.Signer, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no key %s", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	var passphrase *ssh.PassphraseMissingError
	if errors.As(err, &passphrase) {
		return nil, guideway.Errorf(guideway.CodeForbidden, "the key %s has a passphrase", file).WithFix("ssh-add %s", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", file, err)
	}
	return signer, nil
}

// explainSSH says what to do about the common failures.
func explainSSH(err error) error {
	switch {
	case knownhosts.IsHostKeyChanged(err):
		return guideway.Errorf(guideway.CodeForbidden, "the host has another key than the known one").
			WithFix("find out why before you change known_hosts")
	case knownhosts.IsHostUnknown(err):
		return guideway.Errorf(guideway.CodeForbidden, "the key of the host is not known").WithFix("log in once with ssh, which keeps the key in known_hosts")
	case strings.Contains(err.Error(), "unable to authenticate"):
		return guideway.Errorf(guideway.CodeForbidden, "the host takes none of your keys").WithFix("give it one, or name one as sshKey")
	default:
		return err
	}
}

func (s *overSSH) refs(context.Context) (*packp.AdvRefs, error) {
	adv := packp.NewAdvRefs()
	err := adv.Decode(io.LimitReader(s.out, maxAdvertised))
	switch {
	case errors.Is(err, packp.ErrEmptyInput):
		return nil, guideway.Errorf(guideway.CodeNotFound, "the host has no such repository, or does not let you have it")
	case errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && adv.IsEmpty():
		return nil, guideway.Errorf(guideway.CodeNotFound, "the repository has no commit yet")
	case err != nil:
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(adv.Capabilities)
	return adv, nil
}

func (s *overSSH) pack(_ context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return nil, fmt.Errorf("ask for the commit: %w", err)
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return nil, fmt.Errorf("ask for the commit: %w", err)
	}
	answer := packp.NewUploadPackResponse(req)
	if err := answer.Decode(&bounded{ReadCloser: io.NopCloser(s.out), left: s.limit}); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return answer, nil
}

// Close ends the conversation.
func (s *overSSH) Close() error {
	if s.stop != nil {
		s.stop()
	}
	if s.client != nil {
		_ = s.client.Close() // it may have been closed by the other side
	} else if s.conn != nil {
		_ = s.conn.Close()
	}
	if s.agent != nil {
		_ = s.agent.Close()
	}
	return nil
}
