package dayfly;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** JSON as the tests write it, and as they compare it. */
final class Json {
    private static final ObjectMapper MAPPER = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_SINGLE_QUOTES, JsonReadFeature.ALLOW_UNQUOTED_FIELD_NAMES)
            .build();

    private Json() {}

    /** An item, in the short way of writing it: {@code {id: 'a', pk: 'x'}}. */
    static ObjectNode item(String text) {
        try {
            return (ObjectNode) MAPPER.readTree(text);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(text, error);
        }
    }

    /** An item of names and values in turn. */
    static ObjectNode item(Object... namesAndValues) {
        ObjectNode item = MAPPER.createObjectNode();
        for (int at = 0; at < namesAndValues.length; at += 2) {
            item.set((String) namesAndValues[at], MAPPER.valueToTree(namesAndValues[at + 1]));
        }
        return item;
    }

    /** As maps, lists and scalars; a number that is whole is so, however it was written. */
    static Object plain(JsonNode node) {
        if (node.isObject()) {
            Map<String, Object> members = new TreeMap<>();
            node.properties().forEach(member -> members.put(member.getKey(), plain(member.getValue())));
            return members;
        }
        if (node.isArray()) {
            List<Object> elements = new ArrayList<>();
            node.forEach(element -> elements.add(plain(element)));
            return elements;
        }
        if (node.isNumber()) {
            double number = node.doubleValue();
            boolean whole = number == Math.rint(number) && Math.abs(number) < Integer.MAX_VALUE;
            return whole ? (Object) (int) number : node.isIntegralNumber() ? (Object) node.longValue() : number;
        }
        return node.isTextual() ? node.textValue() : node.isBoolean() ? (Object) node.booleanValue() : null;
    }

    /** Rows whose order does not count, so that they can be compared. */
    static List<String> inAnyOrder(List<?> rows) {
        return rows.stream().map(row -> String.valueOf(plain(MAPPER.valueToTree(row)))).sorted().toList();
    }
}
