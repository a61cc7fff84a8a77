package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.models.PartitionKey;
import com.azure.spring.data.cosmos.config.AbstractCosmosConfiguration;
import com.azure.spring.data.cosmos.core.mapping.CompositeIndex;
import com.azure.spring.data.cosmos.core.mapping.CompositeIndexPath;
import com.azure.spring.data.cosmos.core.mapping.Container;
import com.azure.spring.data.cosmos.core.mapping.CosmosIndexingPolicy;
import com.azure.spring.data.cosmos.core.mapping.CosmosUniqueKey;
import com.azure.spring.data.cosmos.core.mapping.CosmosUniqueKeyPolicy;
import com.azure.spring.data.cosmos.core.mapping.GeneratedValue;
import com.azure.spring.data.cosmos.core.query.CosmosPageRequest;
import com.azure.spring.data.cosmos.exception.CosmosConflictException;
import com.azure.spring.data.cosmos.exception.CosmosPreconditionFailedException;
import com.azure.spring.data.cosmos.repository.CosmosRepository;
import com.azure.spring.data.cosmos.repository.Query;
import com.azure.spring.data.cosmos.repository.ReactiveCosmosRepository;
import com.azure.spring.data.cosmos.repository.config.EnableCosmosRepositories;
import com.azure.spring.data.cosmos.repository.config.EnableReactiveCosmosRepositories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Slice;
import org.springframework.data.domain.Sort;
import org.springframework.data.repository.query.Param;
import reactor.core.publisher.Flux;

/** Spring Data: repositories, derived queries, pages, sorting, versions and time to live. */
class SpringTest extends OverHttpAndHttps {
    /** In a container of four ranges, for ninety days. */
    @Container(containerName = "people", ru = "20000", timeToLive = NINETY_DAYS)
    @CosmosIndexingPolicy(compositeIndexes = @CompositeIndex(paths = {
        @CompositeIndexPath(path = "/city"), @CompositeIndexPath(path = "/age")}))
    @CosmosUniqueKeyPolicy(uniqueKeys = @CosmosUniqueKey(paths = "/email"))
    static class Person {
        @Id
        public String id;
        @com.azure.spring.data.cosmos.core.mapping.PartitionKey
        public String city;
        public String name;
        public String email;
        public int age;

        static Person of(String id, String city, String name, int age) {
            var person = new Person();
            person.id = id;
            person.city = city;
            person.name = name;
            person.email = id + "@example.com";
            person.age = age;
            return person;
        }
    }

    interface People extends CosmosRepository<Person, String> {
        List<Person> findByName(String name);

        List<Person> findByCityAndAgeGreaterThanEqual(String city, int age);

        List<Person> findByAgeBetweenOrderByAgeDesc(int least, int most);

        List<Person> findByNameIn(Collection<String> names);

        List<Person> findByNameStartingWithIgnoreCase(String start);

        List<Person> findByNameContainingOrAge(String part, int age);

        List<Person> findByNameNotAndEmailIsNotNull(String name);

        List<Person> findTop3ByOrderByAgeDesc();

        Optional<Person> findByEmail(String email);

        long countByCity(String city);

        boolean existsByName(String name);

        Page<Person> findByAgeLessThan(int age, Pageable pageable);

        Slice<Person> findByCity(String city, Pageable pageable);

        List<Person> deleteByName(String name);

        @Query("SELECT * FROM c WHERE c.age > @age ORDER BY c.age")
        List<Person> olderThan(@Param("age") int age);

        @Query("SELECT VALUE COUNT(1) FROM c WHERE c.city = @city")
        long howManyIn(@Param("city") String city);

        @Query("SELECT DISTINCT VALUE c.city FROM c")
        List<String> cities();
    }

    /** A document that is changed only in the version that was read. */
    @Container(containerName = "accounts")
    static class Account {
        @Id
        @GeneratedValue
        public String id;
        @com.azure.spring.data.cosmos.core.mapping.PartitionKey
        public String owner;
        public int balance;
        @Version
        public String _etag;
    }

    interface Accounts extends CosmosRepository<Account, String> {}

    /** Without a partition key of its own: its id is that, and nothing of it goes through bulk. */
    @Container(containerName = "notes", timeToLive = 100)
    static class Note {
        @Id
        public String id;
        public String text;

        static Note of(String id, String text) {
            var note = new Note();
            note.id = id;
            note.text = text;
            return note;
        }
    }

    interface Notes extends CosmosRepository<Note, String> {}

    interface ReactivePeople extends ReactiveCosmosRepository<Person, String> {
        Flux<Person> findByCityOrderByAge(String city);
    }

    @EnableCosmosRepositories(considerNestedRepositories = true)
    @EnableReactiveCosmosRepositories(considerNestedRepositories = true)
    static class Config extends AbstractCosmosConfiguration {
        private final CosmosAsyncClient client;
        private final String database;

        Config(CosmosAsyncClient client, String database) {
            this.client = client;
            this.database = database;
        }

        /** The client is shared, and outlives the context. */
        @Bean(destroyMethod = "")
        @Override
        public CosmosAsyncClient cosmosAsyncClient(CosmosClientBuilder unused) {
            return client;
        }

        @Bean
        CosmosClientBuilder cosmosClientBuilder() {
            return new CosmosClientBuilder();
        }

        @Override
        protected String getDatabaseName() {
            return database;
        }
    }

    private AnnotationConfigApplicationContext context;
    private People people;

    @BeforeEach
    void startSpring() {
        context = new AnnotationConfigApplicationContext();
        context.registerBean(Config.class, () -> new Config(station.async(), database.getId()));
        context.refresh();
        people = context.getBean(People.class);
    }

    @AfterEach
    void stopSpring() {
        context.close();
    }

    private void writePeople() {
        List<String> names = List.of("Ann", "Ben", "Zoë");
        for (int n = 0; n < 30; n++) {
            people.save(Person.of("p" + n, "city-" + n % 10, names.get(n % 3), n));
        }
    }

    private static List<Integer> ages(Iterable<Person> people) {
        return StreamSupport.stream(people.spliterator(), false).map(person -> person.age).sorted().toList();
    }

    private static List<Integer> agesInOrder(Iterable<Person> people) {
        return StreamSupport.stream(people.spliterator(), false).map(person -> person.age).toList();
    }

    @Test
    void theContainerIsMadeAsItIsAnnotated() {
        var container = database.getContainer("people");
        var properties = container.read().getProperties();
        assertEquals(NINETY_DAYS, properties.getDefaultTimeToLiveInSeconds());
        assertEquals(List.of("/city"), properties.getPartitionKeyDefinition().getPaths());
        assertEquals(WIDE, container.readThroughput().getProperties().getManualThroughput());
        var composite = properties.getIndexingPolicy().getCompositeIndexes().get(0);
        assertEquals(List.of("/city", "/age"), composite.stream().map(path -> path.getPath()).toList());
        var unique = properties.getUniqueKeyPolicy().getUniqueKeys().get(0);
        assertEquals(List.of("/email"), unique.getPaths());
        // What is not annotated has -1: only items with a ttl expire.
        assertEquals(-1, database.getContainer("accounts").read().getProperties().getDefaultTimeToLiveInSeconds());
    }

    @Test
    void anEntityIsSavedFoundAndDeleted() {
        people.save(Person.of("a", "Bern", "Ann", 7));
        assertEquals("Ann", people.findById("a", new PartitionKey("Bern")).orElseThrow().name);
        assertEquals("Ann", people.findById("a").orElseThrow().name);
        assertTrue(people.existsById("a"));

        people.save(Person.of("a", "Bern", "Zoë", 8));
        assertEquals("Zoë", people.findById("a", new PartitionKey("Bern")).orElseThrow().name);
        assertEquals(1, people.count());

        people.deleteById("a", new PartitionKey("Bern"));
        assertTrue(people.findById("a", new PartitionKey("Bern")).isEmpty());
        Person b = people.save(Person.of("b", "Bern", "Ben", 9));
        people.delete(b);
        assertEquals(0, people.count());
    }

    @Test
    void aUniqueKeyIsAConflict() {
        people.save(Person.of("a", "Bern", "Ann", 7));
        Person twin = Person.of("b", "Bern", "Ben", 7);
        twin.email = "a@example.com";
        assertThrows(CosmosConflictException.class, () -> people.save(twin));
    }

    @Test
    void queriesAreDerivedFromNames() {
        writePeople();
        assertEquals(List.of(0, 3, 6, 9, 12, 15, 18, 21, 24, 27), ages(people.findByName("Ann")));
        assertEquals(List.of(13, 23), ages(people.findByCityAndAgeGreaterThanEqual("city-3", 13)));
        assertEquals(List.of(7, 6, 5, 4), agesInOrder(people.findByAgeBetweenOrderByAgeDesc(4, 7)));
        assertEquals(20, ages(people.findByNameIn(List.of("Ann", "Zoë"))).size());
        assertEquals(10, ages(people.findByNameStartingWithIgnoreCase("bE")).size());
        assertEquals(11, ages(people.findByNameContainingOrAge("en", 0)).size());
        assertEquals(20, ages(people.findByNameNotAndEmailIsNotNull("Ann")).size());
        assertEquals(List.of(29, 28, 27), agesInOrder(people.findTop3ByOrderByAgeDesc()));
        assertEquals(17, people.findByEmail("p17@example.com").orElseThrow().age);
        assertEquals(3, people.countByCity("city-4"));
        assertTrue(people.existsByName("Zoë"));
        assertFalse(people.existsByName("Nobody"));
    }

    @Test
    void queriesAreAnnotated() {
        writePeople();
        assertEquals(List.of(26, 27, 28, 29), agesInOrder(people.olderThan(25)));
        assertEquals(3, people.howManyIn("city-4"));
        assertEquals(10, people.cities().size());
    }

    @Test
    void manyAreFoundByIdAndByPartition() {
        writePeople();
        assertEquals(List.of(1, 2, 29), ages(people.findAllById(List.of("p1", "p2", "p29", "nobody"))));
        assertEquals(List.of(4, 14, 24), ages(people.findAll(new PartitionKey("city-4"))));
        assertEquals(30, ages(people.findAll()).size());
    }

    @Test
    void whatIsFoundIsSorted() {
        writePeople();
        Sort byCity = Sort.by(Sort.Order.asc("city"), Sort.Order.asc("age"));
        assertEquals(List.of(0, 10, 20, 1, 11, 21), agesInOrder(people.findAll(byCity)).subList(0, 6));
        assertEquals(List.of(29, 28, 27), agesInOrder(people.findAll(Sort.by("age").descending())).subList(0, 3));
    }

    @Test
    void whatIsFoundComesInPages() {
        writePeople();
        var found = new ArrayList<Integer>();
        Page<Person> page = people.findAll(new CosmosPageRequest(0, 8, null, Sort.by("age")));
        assertEquals(30, page.getTotalElements());
        assertEquals(4, page.getTotalPages());
        found.addAll(agesInOrder(page));
        while (page.hasNext()) {
            page = people.findAll(page.nextPageable());
            found.addAll(agesInOrder(page));
        }
        assertEquals(IntStream.range(0, 30).boxed().toList(), found);

        Page<Person> young = people.findByAgeLessThan(10, new CosmosPageRequest(0, 4, null, Sort.by("age")));
        assertEquals(List.of(0, 1, 2, 3), agesInOrder(young));
        young = people.findByAgeLessThan(10, young.nextPageable());
        assertEquals(List.of(4, 5, 6, 7), agesInOrder(young));
    }

    @Test
    void whatIsFoundComesInSlices() {
        writePeople();
        Slice<Person> slice = people.findByCity("city-7", new CosmosPageRequest(0, 2, null, Sort.by("age")));
        assertEquals(List.of(7, 17), agesInOrder(slice));
        assertTrue(slice.hasNext());
        slice = people.findByCity("city-7", slice.nextPageable());
        assertEquals(List.of(27), agesInOrder(slice));
        assertFalse(slice.hasNext());
    }

    @Test
    void anOldVersionIsNotSaved() {
        Accounts accounts = context.getBean(Accounts.class);
        var account = new Account();
        account.owner = "ann";
        account.balance = 10;
        Account first = accounts.save(account);
        assertNotEquals(null, first.id);

        PartitionKey ann = new PartitionKey("ann");
        Account other = accounts.findById(first.id, ann).orElseThrow();
        other.balance = 20;
        Account second = accounts.save(other);
        assertNotEquals(first._etag, second._etag);

        first.balance = 5;
        assertThrows(CosmosPreconditionFailedException.class, () -> accounts.save(first));
        assertThrows(CosmosPreconditionFailedException.class, () -> accounts.delete(first));
        assertEquals(20, accounts.findById(first.id, ann).orElseThrow().balance);
        accounts.delete(second);
        assertEquals(0, accounts.count());
    }

    @Test
    void anEntityExpiresByTheAnnotation() {
        people.save(Person.of("a", "Bern", "Ann", 7));
        advance(NINETY_DAYS - 1);
        assertEquals(1, people.count());
        assertTrue(people.findById("a", new PartitionKey("Bern")).isPresent());
        advance(1);
        assertEquals(0, people.count());
        assertTrue(people.findById("a", new PartitionKey("Bern")).isEmpty());
        assertFalse(people.existsByName("Ann"));
        assertEquals(List.of(), ages(people.findAll()));
        people.save(Person.of("a", "Bern", "Ann", 7));
        assertEquals(1, people.count());
    }

    @Test
    void anItemWithItsOwnTtlExpiresForSpringToo() {
        database.getContainer("people")
                .createItem(item("{id: 'a', city: 'Bern', name: 'Ann', age: 7, ttl: 10}"));
        assertEquals("Ann", people.findById("a").orElseThrow().name);
        advance(10);
        assertTrue(people.findById("a").isEmpty());
    }

    @Test
    void manyAreSavedAndDeletedOneByOneWithoutAPartitionKey() {
        Notes notes = context.getBean(Notes.class);
        notes.saveAll(List.of(Note.of("a", "one"), Note.of("b", "two"), Note.of("c", "three")));
        assertEquals(3, notes.count());
        notes.deleteAll(List.of(notes.findById("a").orElseThrow()));
        assertEquals(2, notes.count());
        advance(100);
        assertEquals(0, notes.count());
        notes.saveAll(List.of(Note.of("a", "one")));
        notes.deleteAll();
        assertEquals(0, notes.count());
    }

    @Test
    void aReactiveRepositoryDoesTheSame() {
        ReactivePeople reactive = context.getBean(ReactivePeople.class);
        Flux.range(0, 20).flatMap(n -> reactive.save(Person.of("p" + n, "city-" + n % 5, "Ann", n))).blockLast();
        assertEquals(20, reactive.count().block());
        assertEquals(List.of(3, 8, 13, 18), agesInOrder(reactive.findByCityOrderByAge("city-3").toIterable()));
        assertEquals("Ann", reactive.findById("p7", new PartitionKey("city-2")).block().name);
        advance(NINETY_DAYS);
        assertEquals(0, reactive.count().block());
    }

    private static List<Person> make(int from, int to) {
        return IntStream.range(from, to).mapToObj(n -> Person.of("p" + n, "city-" + n % 10, "Ann", n)).toList();
    }

    /** These go through bulk. */
    @Test
    void manyAreSavedAndDeletedAtOnce() {
        List<Person> saved = new ArrayList<>();
        people.saveAll(make(0, 250)).forEach(saved::add);
        assertEquals(IntStream.range(0, 250).boxed().toList(), ages(saved));
        assertEquals(250, people.count());
        people.saveAll(List.of(Person.of("p7", "city-7", "Zoë", 7), Person.of("new", "Bern", "Ben", 250)));
        assertEquals("Zoë", people.findById("p7", new PartitionKey("city-7")).orElseThrow().name);
        assertEquals(251, people.count());

        people.deleteAll(people.findAll(new PartitionKey("city-3")));
        assertEquals(226, people.count());
        assertEquals(List.of(7), ages(people.deleteByName("Zoë")));
        assertEquals(225, people.count());
        people.deleteAll();
        assertEquals(0, people.count());
    }

    @Test
    void whatWasSavedAtOnceExpiresExactly() {
        people.saveAll(make(0, 30));
        advance(10);
        people.saveAll(make(20, 30));
        advance(NINETY_DAYS - 11);
        assertEquals(30, people.count());
        advance(1);
        assertEquals(10, people.count());
        people.deleteByName("Ann");
        assertEquals(0, people.count());
    }

    @Test
    void aReactiveRepositorySavesAndDeletesManyAtOnce() {
        ReactivePeople reactive = context.getBean(ReactivePeople.class);
        assertEquals(120, reactive.saveAll(make(0, 120)).count().block());
        assertEquals(120, reactive.count().block());
        reactive.deleteAll(reactive.findByCityOrderByAge("city-3")).block();
        assertEquals(108, reactive.count().block());
        reactive.deleteAll().block();
        assertEquals(0, reactive.count().block());
    }
}
