package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// SchemaVersion returns the version of the tables that this version of the program creates.
func SchemaVersion() int { return len(migrations()) }

// DumpTables copies the tables of stores in one database, all as of one moment. urls are the
// URLs by the names of the stores; a store that does not exist is skipped. write writes the
// text of a table to a file that it creates.
func DumpTables(ctx context.Context, urls map[string]string, write func(store, table string, copyTo func(io.Writer) error) error) (map[string]rows.Copied, error) {
	out := map[string]rows.Copied{}
	err := inSchemas(ctx, urls, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx, name string, s *Store) error {
		version, err := s.schemaVersion(ctx, tx, len(migrations()))
		if err != nil || version == 0 {
			return err
		}
		out[name] = rows.Copied{Schema: version, Rows: map[string]int64{}}
		return eachTable(ctx, tx, func(table, quoted string) error {
			return write(name, table, func(w io.Writer) error {
				tag, err := tx.Conn().PgConn().CopyTo(ctx, w, `copy `+quoted+` to stdout (format csv, header)`)
				out[name].Rows[table] = tag.RowsAffected()
				return err
			})
		})
	})
	return out, err
}

// inSchemas runs a transaction and calls do for each store, with its schema as the search path.
func inSchemas(ctx context.Context, urls map[string]string, o pgx.TxOptions, do func(tx pgx.Tx, name string, s *Store) error) error {
	names := slices.Sorted(maps.Keys(urls))
	first, err := connect(ctx, Options{URL: urls[names[0]]})
	if err != nil {
		return err
	}
	defer first.Close()
	err = pgx.BeginTxFunc(ctx, first.pool, o, func(tx pgx.Tx) error {
		for _, name := range names {
			cfg, err := parseOptions(Options{URL: urls[name]})
			if err == nil {
				_, err = tx.Exec(ctx, `select set_config('search_path', $1, true)`, cfg.schema)
			}
			if err == nil {
				err = do(tx, name, &Store{schema: cfg.schema, where: cfg.where})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return first.wrapError("copy the tables", err)
	}
	return nil
}

// eachTable calls do for the tables of the current schema, referenced tables first. Those of
// River are left out: machine runs get new jobs.
func eachTable(ctx context.Context, tx pgx.Tx, do func(table, quoted string) error) error {
	found, err := tx.Query(ctx, `select relname from pg_class c
		where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname <> 'guideway_tables' and not starts_with(relname, 'river_')
		order by (select count(*) from pg_constraint k where k.conrelid = c.oid and k.contype = 'f'), relname`)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	for i := 0; err == nil && i < len(tables); i++ {
		err = do(tables[i], pgx.Identifier{tables[i]}.Sanitize())
	}
	return err
}

// LoadTables creates the tables of stores from copies, in one transaction: dirs has the files
// TABLE.csv of each store, and versions the version of its tables. An existing schema gets a
// suffix, or is an error if the suffix is "". last is called before the commit.
func LoadTables(ctx context.Context, urls map[string]string, dirs map[string]fs.FS, versions map[string]rows.Copied, suffix string, last func() error) error {
	done := 0
	return inSchemas(ctx, urls, pgx.TxOptions{}, func(tx pgx.Tx, name string, s *Store) error {
		err := s.renameSchema(ctx, tx, suffix)
		if version := versions[name].Schema; err == nil && version > 0 {
			if err = s.createSchema(ctx, tx); err == nil {
				_, err = tx.Exec(ctx, strings.Join(migrations()[:version], ";")+fmt.Sprintf("; update guideway_tables set version = %d", version))
			}
			if err == nil {
				err = eachTable(ctx, tx, func(table, quoted string) error { return loadTable(ctx, tx, dirs[name], table, quoted) })
			}
			if err == nil {
				_, err = tx.Exec(ctx, finishLoad)
			}
		}
		if done++; err == nil && done == len(urls) {
			err = last()
		}
		return err
	})
}

func (s *Store) renameSchema(ctx context.Context, tx pgx.Tx, suffix string) error {
	var exists bool
	err := tx.QueryRow(ctx, `select exists (select from pg_namespace where nspname = $1)`, s.schema).Scan(&exists)
	if err != nil || !exists {
		return err
	}
	if suffix == "" {
		return guideway.Errorf(guideway.CodeConflict, "the schema %s at %s exists", s.schema, s.where).
			WithFix("restore into another database, or add --replace, which keeps the old tables under another schema")
	}
	_, err = tx.Exec(ctx, `alter schema `+pgx.Identifier{s.schema}.Sanitize()+` rename to `+pgx.Identifier{s.schema + suffix}.Sanitize())
	return err
}

// finishLoad continues the sequences after the restored rows. It assigns the machine runs in
// progress to a process that does not exist, so that servers take them over.
const finishLoad = `
	do $$
	declare r record;
	begin
		for r in select c.relname, a.attname, pg_get_serial_sequence(quote_ident(c.relname), a.attname) as seq
			from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
			where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' loop
			if r.seq is not null then
				execute format('select setval(%L, greatest((select max(%I) from %I), 1))', r.seq, r.attname, r.relname);
			end if;
		end loop;
	end
	$$;
	insert into drives (run, user_id, instance, attended) select id, user_id, '', 0 from runs where status = 'running' and starts_with(encode(id, 'escape'), 'm_')
		on conflict (run) do nothing`

func loadTable(ctx context.Context, tx pgx.Tx, dir fs.FS, table, quoted string) error {
	file, err := dir.Open(table + ".csv")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReader(file)
	header, err := in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the columns of %s: %w", table, err)
	}
	columns := strings.Split(strings.TrimSpace(header), ",")
	for i := range columns {
		columns[i] = pgx.Identifier{columns[i]}.Sanitize()
	}
	if _, err := tx.Exec(ctx, `delete from `+quoted); err != nil { // migrations insert some rows
		return err
	}
	_, err = tx.Conn().PgConn().CopyFrom(ctx, in, `copy `+quoted+` (`+strings.Join(columns, ", ")+`) from stdin (format csv)`)
	return err
}
