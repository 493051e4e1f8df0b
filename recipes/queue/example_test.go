package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/queue"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, stopServer := rig.Embedded()
	defer stopServer()

	mail := queue.NewPriority(recipes.On(c), "/queues/mail")
	for letter, priority := range map[string]int32{"bill": 5, "telegram": 1} {
		if err := mail.Put(ctx, priority, []byte(letter)); err != nil {
			fmt.Println(err)
		}
	}
	left := 2
	for item, err := range mail.Items(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		// The item stays in the queue until we acknowledge it.
		fmt.Printf("%s %v\n", item.Values[0], item.Ack(ctx))
		if left--; left == 0 {
			break
		}
	}
	// Output:
	// telegram <nil>
	// bill <nil>
}

// A consumer returns an item that it can't process now to its old place.
func ExampleQueue() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	q := queue.New(recipes.On(c), "/queues/mail", queue.WithMaxItems(1000))
	if err := q.Put(ctx, []byte("letter")); err != nil {
		fmt.Println(err)
		return
	}
	for attempt := range 2 {
		item, err := q.TryTake(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if attempt == 0 {
			fmt.Printf("%s: not now, %v\n", item.Values[0], item.Return(ctx))
			continue
		}
		fmt.Printf("%s: sent, %v\n", item.Values[0], item.Ack(ctx))
	}
	_, err := q.TryTake(ctx)
	fmt.Println(errors.Is(err, queue.ErrEmpty))
	// Output:
	// letter: not now, <nil>
	// letter: sent, <nil>
	// true
}

// An item becomes available at its time.
func ExampleDelay() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	q := queue.NewDelay(recipes.On(c), "/queues/reminders")
	_ = q.Put(ctx, time.Now().Add(time.Hour), []byte("in an hour"))
	_ = q.Put(ctx, time.Now(), []byte("now"))
	item, err := q.Take(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %v\n", item.Values[0], item.Ack(ctx))
	_, err = q.TryTake(ctx)
	fmt.Println(errors.Is(err, queue.ErrEmpty))
	// Output:
	// now <nil>
	// true
}

// We remove an item that we no longer want by its id.
func ExampleID() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	q := queue.NewID(recipes.On(c), "/queues/orders")
	_ = q.Put(ctx, "customer-7", []byte("a book"))
	_ = q.Put(ctx, "customer-8", []byte("a lamp"))
	removed, err := q.Remove(ctx, "customer-7")
	fmt.Println(removed, err)
	item, err := q.Take(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %v\n", item.Values[0], item.Ack(ctx))
	// Output:
	// 1 <nil>
	// a lamp <nil>
}

// Plain data, removed when a client gets it.
func ExampleSimple() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	q := queue.NewSimple(recipes.On(c), "/queues/hints")
	fmt.Println(q.Offer(ctx, []byte("hint")))
	first, err := q.Peek(ctx)
	fmt.Printf("%s %v\n", first, err)
	first, err = q.Take(ctx)
	fmt.Printf("%s %v\n", first, err)
	// Output:
	// <nil>
	// hint <nil>
	// hint <nil>
}

// We distribute many items among queues, which are added as needed.
func ExampleSharder() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, stopServer := rig.Embedded()
	defer stopServer()

	mail, err := queue.NewSharder(ctx, recipes.On(c), "/queues/mail", "/queues/mail-leader", queue.New)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mail.Close()
	fmt.Println(len(mail.Paths()), mail.Queue().Put(ctx, []byte("letter")))

	err = mail.Run(ctx, func(ctx context.Context, q *queue.Queue) error {
		for item, err := range q.Items(ctx) {
			if err != nil {
				return err
			}
			fmt.Printf("%s %v\n", item.Values[0], item.Ack(ctx))
			stop() // otherwise it runs forever
		}
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// 1 <nil>
	// letter <nil>
	// true
}
