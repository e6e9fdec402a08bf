// The tutorial of docs/HTTP.md by a client that ogen has made of docs/openapi.json.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-faster/jx"
	"github.com/ogen-go/ogen/ogenerrors"

	"tutorial/sockpqd"
)

// nobody has no credentials: the server of this tutorial has no users.
type nobody struct{}

func (nobody) Basic(context.Context, sockpqd.OperationName) (sockpqd.Basic, error) {
	return sockpqd.Basic{}, ogenerrors.ErrSkipClientSecurity
}

func (nobody) Bearer(context.Context, sockpqd.OperationName) (sockpqd.Bearer, error) {
	return sockpqd.Bearer{}, ogenerrors.ErrSkipClientSecurity
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

func run(ctx context.Context, url string) error {
	client, err := sockpqd.NewClient(url, nobody{})
	if err != nil {
		return err
	}
	for _, again := range []bool{false, true} {
		put, err := client.JobsPut(ctx,
			&sockpqd.Put{JSON: jx.Raw(`{"to":"ann"}`), Priority: sockpqd.NewOptInt(5)},
			sockpqd.JobsPutParams{Queue: "go_mail", IdempotencyKey: sockpqd.NewOptString("go-1")})
		if err != nil {
			return err
		}
		stored, ok := put.(*sockpqd.PutView)
		if !ok || stored.Outcome.Value != "new" || stored.Replayed.Value != again {
			return fmt.Errorf("put: %+v", put)
		}
	}
	take, err := client.TakesTake(ctx, sockpqd.NewOptTake(sockpqd.Take{Count: sockpqd.NewOptInt(9)}),
		sockpqd.TakesTakeParams{Queue: "go_mail"})
	if err != nil {
		return err
	}
	jobs, ok := take.(*sockpqd.JobsViewHeaders)
	if !ok || len(jobs.Response.Jobs) != 1 || string(jobs.Response.Jobs[0].JSON) != `{"to":"ann"}` {
		return fmt.Errorf("take: %+v", take)
	}
	id := sockpqd.RunningDoneParams{JobID: jobs.Response.Jobs[0].ID.Value}
	done, err := client.RunningDone(ctx, sockpqd.OptDone{}, id)
	if err != nil {
		return err
	}
	if finished, ok := done.(*sockpqd.FinishedView); !ok || !finished.QueueDone.Value {
		return fmt.Errorf("done: %+v", done)
	}
	late, err := client.RunningDone(ctx, sockpqd.OptDone{}, id)
	if err != nil {
		return err
	}
	if problem, ok := late.(*sockpqd.RunningDoneNotFound); !ok || problem.Reason.Value != "Job Not Found" {
		return fmt.Errorf("late: %+v", late)
	}
	return nil
}
