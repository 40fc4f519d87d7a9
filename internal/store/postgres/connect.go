package postgres

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guideway-dev/guideway"
)

const (
	defaultSchema = "guideway"
	// oldestServer is the oldest supported server version, in the form of
	// server_version_num.
	oldestServer = 140000
	// lockTimeout bounds how long a statement waits for a locked row.
	lockTimeout = 10 * time.Second
	// maxConnIdleTime is how long an idle connection stays open. There may be one process
	// per client, and the server has few connections.
	maxConnIdleTime = 2 * time.Minute
)

// storeConfig is the parsed form of Options.
type storeConfig struct {
	pool   *pgxpool.Config
	schema string
	// where describes the database in messages, without secrets.
	where string
}

// parseOptions parses the options. It drops the library's error for an invalid URL, which
// may quote a password.
func parseOptions(o Options) (*storeConfig, error) {
	pool, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the URL of the PostgreSQL store, one of its parameters, a PG variable of the environment or a file that one of them names is invalid").
			WithFix("write the URL as postgres://user@host:5432/database; escape characters of the password such as @ / # : as %%40 %%2F %%23 %%3A, or put the password into PGPASSWORD or ~/.pgpass; check the values of parameters such as sslmode and pool_max_conns, and that the files of sslrootcert, sslcert and sslkey exist")
	}
	cfg := &storeConfig{pool: pool, schema: defaultSchema}
	params := pool.ConnConfig.RuntimeParams
	if given, ok := params["search_path"]; ok {
		cfg.schema = given
		delete(params, "search_path")
	}
	if !isSchemaName(cfg.schema) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "search_path=%q in the URL of the store is not a valid schema name", cfg.schema).
			WithFix("use one name of lower-case letters, digits and _, such as search_path=guideway")
	}
	if params["application_name"] == "" {
		params["application_name"] = "guideway"
	}
	if !strings.Contains(o.URL, "pool_max_conns") {
		pool.MaxConns = int32(cmp.Or(max(o.MaxConns, 0), 8))
	}
	pool.ConnConfig.ConnectTimeout = cmp.Or(pool.ConnConfig.ConnectTimeout, 5*time.Second)
	pool.MaxConnIdleTime = maxConnIdleTime
	pool.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { return setUpConn(ctx, c, cfg.schema) }
	cc := pool.ConnConfig
	cfg.where = fmt.Sprintf("%s/%s", net.JoinHostPort(cc.Host, strconv.Itoa(int(cc.Port))), cc.Database)
	return cfg, nil
}

func isSchemaName(name string) bool {
	return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`).MatchString(name) && !strings.HasPrefix(name, "pg_")
}

// setUpConn configures a new connection. It uses a statement instead of startup parameters,
// which poolers refuse. An acknowledged commit must be on disk: if the server or the role
// sets synchronous_commit to off, it is set to on; other settings are kept.
func setUpConn(ctx context.Context, c *pgx.Conn, schema string) error {
	_, err := c.Exec(ctx, `
		select set_config('search_path', $1::text, false), set_config('lock_timeout', $2::text, false),
			case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end`,
		schema, strconv.FormatInt(lockTimeout.Milliseconds(), 10))
	return err
}

// checkServer returns an error if the server cannot store runs safely.
func (s *Store) checkServer(ctx context.Context, _ bool) error {
	var version int
	var encoding, readOnly, fsync string
	var standby bool
	err := s.pool.QueryRow(ctx, `
		select current_setting('server_version_num')::int, current_setting('server_encoding'),
			current_setting('transaction_read_only'), current_setting('fsync'), pg_is_in_recovery()`).
		Scan(&version, &encoding, &readOnly, &fsync, &standby)
	if err != nil {
		return err
	}
	switch {
	case version < oldestServer:
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s is PostgreSQL %d, which is not supported", s.where, version/10000).
			WithFix("use PostgreSQL %d or newer", oldestServer/10000)
	case encoding != "UTF8":
		return guideway.Errorf(guideway.CodeUnavailable, "the database at %s has the encoding %s, which is not supported", s.where, encoding).
			WithFix("use a database created with: createdb --encoding=UTF8 --template=template0 NAME")
	case standby || readOnly == "on":
		return s.readOnlyError(nil)
	}
	if fsync == "off" {
		s.log.WarnContext(ctx, "the PostgreSQL server runs with fsync=off: a power failure can lose runs", "server", s.where)
	}
	return nil
}
