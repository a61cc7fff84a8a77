package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The change feed, of which this SDK has the latest versions.
func TestChangeFeed(t *testing.T) {
	tests := map[string]func(*testing.T, *world){
		"LatestVersionsComeOnce":       latestVersionsComeOnce,
		"PagesHaveAsManyAsTheyMay":     pagesHaveAsManyAsTheyMay,
		"FromATime":                    fromATime,
		"APartitionHasItsOwn":          aPartitionHasItsOwn,
		"WhatHasExpiredIsInNoPage":     whatHasExpiredIsInNoPage,
		"EachRangeHasItsOwn":           eachRangeHasItsOwn,
		"ItGoesOnWhereRangesDivide":    itGoesOnWhereRangesDivide,
		"AnotherContainersTokenIsNone": anotherContainersTokenIsNone,
	}
	for scheme, storage := range map[string]string{"http": "--memory", "https": "--on-disk"} {
		t.Run(scheme, func(t *testing.T) {
			world := start(t, scheme, storage)
			for name, test := range tests {
				t.Run(name, func(t *testing.T) { test(t, world) })
			}
		})
	}
}

func latestVersionsComeOnce(t *testing.T, w *world) {
	container := w.container(t, nil)
	found, token := changes(t, container, whole(t, container))
	expect(t, len(found), 0)
	for n := range 5 {
		put(t, container, fmt.Sprint(n), "x", 0)
	}
	put(t, container, "1", "x", 1)
	_, err := container.DeleteItem(context.Background(), x, "2", nil)
	check(t, err)
	found, token = changes(t, container, after(token))
	expect(t, names(found), []string{"0", "3", "4", "1"})
	expect(t, found[3].N, 1)
	expect(t, slices.IsSortedFunc(found, func(a, b change) int { return a.Lsn - b.Lsn }), true)
	found, token = changes(t, container, after(token))
	expect(t, len(found), 0)
	put(t, container, "5", "y", 0)
	found, _ = changes(t, container, after(token))
	expect(t, names(found), []string{"5"})
	found, _ = changes(t, container, whole(t, container))
	expect(t, names(found), []string{"0", "3", "4", "1", "5"})
}

func pagesHaveAsManyAsTheyMay(t *testing.T, w *world) {
	container := w.container(t, nil)
	for n := range 5 {
		put(t, container, fmt.Sprint(n), "x", 0)
	}
	options := whole(t, container)
	options.MaxItemCount = 2
	var sizes []int
	for len(sizes) < 4 {
		page, err := container.ReadChangeFeed(context.Background(), &options)
		check(t, err)
		sizes = append(sizes, page.Count)
		options.Continuation = &page.ContinuationToken
	}
	expect(t, sizes, []int{2, 2, 1, 0})
}

func fromATime(t *testing.T, w *world) {
	container := w.container(t, nil)
	put(t, container, "before", "x", 0)
	w.advance(t, 10)
	second := put(t, container, "after", "x", 0)
	options := whole(t, container)
	options.StartFrom = &second
	found, _ := changes(t, container, options)
	expect(t, names(found), []string{"after"})
	later := second.Add(time.Minute)
	options.StartFrom = &later
	found, _ = changes(t, container, options)
	expect(t, len(found), 0)
}

func aPartitionHasItsOwn(t *testing.T, w *world) {
	container := w.container(t, nil)
	put(t, container, "a", "x", 0)
	put(t, container, "b", "y", 0)
	put(t, container, "c", "x", 0)
	options := whole(t, container)
	options.PartitionKey = &x
	found, token := changes(t, container, options)
	expect(t, names(found), []string{"a", "c"})
	put(t, container, "d", "y", 0)
	put(t, container, "a", "x", 1)
	found, _ = changes(t, container, azcosmos.ChangeFeedOptions{Continuation: &token, PartitionKey: &x})
	expect(t, names(found), []string{"a"})
}

func whatHasExpiredIsInNoPage(t *testing.T, w *world) {
	never := int32(-1)
	container := w.container(t, func(properties *azcosmos.ContainerProperties) {
		properties.DefaultTimeToLive = &never
	})
	_, token := changes(t, container, whole(t, container))
	create(t, container, `{"id":"mortal","pk":"x","ttl":5}`)
	create(t, container, `{"id":"eternal","pk":"x"}`)
	w.advance(t, 4)
	found, _ := changes(t, container, after(token))
	expect(t, names(found), []string{"mortal", "eternal"})
	w.advance(t, 1)
	found, _ = changes(t, container, after(token))
	expect(t, names(found), []string{"eternal"})
	found, _ = changes(t, container, whole(t, container))
	expect(t, names(found), []string{"eternal"})
}

// Each part of the container has its own changes; together they are all.
func eachRangeHasItsOwn(t *testing.T, w *world) {
	container := w.container(t, nil)
	fill(t, container)
	w.split(t, container, 3)
	ranges, err := container.ReadFeedRanges(context.Background(), nil)
	check(t, err)
	expect(t, len(ranges), 3)
	var all []string
	for _, part := range ranges {
		found, token := changes(t, container, azcosmos.ChangeFeedOptions{FeedRange: &part})
		all = append(all, names(found)...)
		found, _ = changes(t, container, after(token))
		expect(t, len(found), 0)
	}
	expect(t, sorted(all), sorted(numbered(40)))
}

// A token goes on in the halves of its range, also within pages.
func itGoesOnWhereRangesDivide(t *testing.T, w *world) {
	container := w.container(t, nil)
	fill(t, container)
	options := whole(t, container)
	options.MaxItemCount = 7
	page, err := container.ReadChangeFeed(context.Background(), &options)
	check(t, err)
	found := parse(t, page)
	expect(t, names(found), numbered(7))
	w.split(t, container, 3)
	rest, token := changes(t, container, azcosmos.ChangeFeedOptions{
		Continuation: &page.ContinuationToken, MaxItemCount: 7,
	})
	expect(t, sorted(names(append(found, rest...))), sorted(numbered(40)))
	for _, n := range []int{3, 20, 39} {
		put(t, container, fmt.Sprintf("i%d", n), fmt.Sprintf("p%d", n%15), -n)
	}
	w.split(t, container, 7)
	found, token = changes(t, container, after(token))
	expect(t, sorted(names(found)), []string{"i20", "i3", "i39"})
	found, _ = changes(t, container, after(token))
	expect(t, len(found), 0)
}

// The client itself knows that a container was made anew.
func anotherContainersTokenIsNone(t *testing.T, w *world) {
	first, second := w.container(t, nil), w.container(t, nil)
	_, token := changes(t, first, whole(t, first))
	options := after(token)
	_, err := second.ReadChangeFeed(context.Background(), &options)
	var answer *azcore.ResponseError
	expect(t, err != nil && !errors.As(err, &answer), true)
}

type change struct {
	ID  string
	N   int
	Lsn int `json:"_lsn"`
}

// whole asks for all changes from the beginning.
func whole(t *testing.T, container *azcosmos.ContainerClient) azcosmos.ChangeFeedOptions {
	ranges, err := container.ReadFeedRanges(context.Background(), nil)
	check(t, err)
	all := azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}
	expect(t, ranges[0].MinInclusive, all.MinInclusive)
	expect(t, ranges[len(ranges)-1].MaxExclusive, all.MaxExclusive)
	return azcosmos.ChangeFeedOptions{FeedRange: &all}
}

func after(token string) azcosmos.ChangeFeedOptions {
	return azcosmos.ChangeFeedOptions{Continuation: &token}
}

// changes are read to the end, and the token is that of what comes later.
func changes(
	t *testing.T, container *azcosmos.ContainerClient, options azcosmos.ChangeFeedOptions,
) (found []change, token string) {
	t.Helper()
	for {
		page, err := container.ReadChangeFeed(context.Background(), &options)
		check(t, err)
		found = append(found, parse(t, page)...)
		options.Continuation = &page.ContinuationToken
		if page.Count == 0 {
			return found, page.ContinuationToken
		}
	}
}

func parse(t *testing.T, page azcosmos.ChangeFeedResponse) (found []change) {
	for _, item := range page.Items {
		var parsed change
		check(t, json.Unmarshal(item, &parsed))
		found = append(found, parsed)
	}
	return found
}

// put writes an item, and says when that was.
func put(t *testing.T, container *azcosmos.ContainerClient, id, key string, n int) time.Time {
	item := fmt.Appendf(nil, `{"id":"%s","pk":"%s","n":%d}`, id, key, n)
	answer, err := container.UpsertItem(
		context.Background(), azcosmos.NewPartitionKeyString(key), item, nil)
	check(t, err)
	second, err := http.ParseTime(answer.RawResponse.Header.Get("Date"))
	check(t, err)
	return second
}

// fill writes forty items in fifteen partitions.
func fill(t *testing.T, container *azcosmos.ContainerClient) {
	for n, id := range numbered(40) {
		put(t, container, id, fmt.Sprintf("p%d", n%15), n)
	}
}

// split divides the ranges of a container until there are so many.
func (w *world) split(t *testing.T, container *azcosmos.ContainerClient, ranges int) {
	call := "containers/d/" + container.ID() + "/split"
	w.admin(t, http.MethodPost, call, fmt.Sprintf(`{"ranges":%d}`, ranges))
}

func names(found []change) (names []string) {
	for _, change := range found {
		names = append(names, change.ID)
	}
	return names
}

func numbered(count int) (ids []string) {
	for n := range count {
		ids = append(ids, fmt.Sprintf("i%d", n))
	}
	return ids
}

func sorted(ids []string) []string {
	return slices.Sorted(slices.Values(ids))
}
