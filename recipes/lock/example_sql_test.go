package lock_test

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite" // a database in pure Go

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// The database should refuse a client that has not noticed that it has lost the lock. We
// store the greatest token in a row, and one statement both checks and writes.
func ExampleLease_Token() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have its own in-memory database
	_, err = db.ExecContext(ctx, `CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER, token INTEGER);
		INSERT INTO stock VALUES ('lamp', 3, 0)`)
	if err != nil {
		fmt.Println(err)
		return
	}
	write := func(pieces int, token lock.Token) string {
		r, err := db.ExecContext(ctx, `UPDATE stock SET pieces = ?, token = ? WHERE item = 'lamp' AND token <= ?`,
			pieces, int64(token), int64(token))
		if err != nil {
			return err.Error()
		}
		if n, _ := r.RowsAffected(); n == 0 {
			return "refused: somebody else has had the lock since"
		}
		return "accepted"
	}

	m := lock.NewMutex(recipes.On(c), "/locks/lamp")
	slow, err := m.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the first holder:", write(2, slow.Token()))

	// We suspend the first holder for so long that the servers give its lock to another
	// client.
	_ = c.Delete(ctx, slow.Path(), client.AnyVersion)
	next, err := m.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the second:", write(1, next.Token()))
	fmt.Println("the first again:", write(1, slow.Token()))
	_, _ = slow.Release(ctx), next.Release(ctx)

	var pieces int
	err = db.QueryRowContext(ctx, `SELECT pieces FROM stock`).Scan(&pieces)
	fmt.Println("pieces:", pieces, err)
	// Output:
	// the first holder: accepted
	// the second: accepted
	// the first again: refused: somebody else has had the lock since
	// pieces: 1 <nil>
}
